import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_experts import random_arrays
from shared_files import expert_weights

from drol.errors import InputError
from drol_reproduction.experts.expert import Expert, make_expert, read_expert, rename_layers, save_expert


def expert_of(arrays, **settings) -> Expert:
    defaults = {"activation": "relu", "output": "tanh", "input": "ogbench-direction", "direction_scale": 10.0}
    return make_expert(arrays, **(defaults | settings), where="mine.npz")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=5), st.sampled_from(["relu", "tanh", "gelu", "silu"]))
def test_the_action_is_that_of_the_layers(sizes, activation):
    import jax

    arrays = random_arrays(sizes)
    arrays["input_shift"] = np.linspace(-1, 1, sizes[0]).astype(np.float32)
    arrays["input_scale"] = np.linspace(1, 2, sizes[0]).astype(np.float32)
    arrays["output_scale"] = np.full(sizes[-1], 0.5, np.float32)
    arrays["output_shift"] = np.full(sizes[-1], 0.25, np.float32)
    values = np.linspace(-2, 2, sizes[0])
    hidden = (values - arrays["input_shift"]) / arrays["input_scale"]
    for layer in range(len(sizes) - 1):
        hidden = hidden @ arrays[f"kernel_{layer}"] + arrays[f"bias_{layer}"]
        if layer < len(sizes) - 2:
            hidden = np.asarray(getattr(jax.nn, activation)(hidden))
    expected = np.tanh(hidden) * 0.5 + 0.25
    np.testing.assert_allclose(expert_of(arrays, activation=activation)(values), expected, rtol=1e-4, atol=1e-5)


def test_a_walker_sees_its_state_without_the_position_and_a_scaled_direction():
    expert = expert_of({"kernel_0": np.eye(5, dtype=np.float32), "bias_0": np.zeros(5, np.float32)}, output="none")
    state, direction = np.array([100.0, 200, 1, 2, 3]), np.array([0.6, 0.8])
    np.testing.assert_allclose(expert.walking_action(state, direction), [1, 2, 3, 6, 8])
    own = expert_of(
        {"kernel_0": np.eye(5, dtype=np.float32), "bias_0": np.zeros(5, np.float32)}, output="none", input="observation"
    )
    np.testing.assert_allclose(own.walking_action(state, direction), state)


def test_a_saved_policy_is_read_back_and_is_the_same(tmp_path):
    expert = expert_of(random_arrays([5, 4, 2]) | {"input_scale": np.full(5, 2, np.float32)})
    save_expert(expert, tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "policy.json", "policy.npz"]
    for path in (tmp_path / "mine", tmp_path / "mine" / "policy.json", tmp_path / "mine" / "policy.npz"):
        read = read_expert(path)
        assert read.digest() == expert.digest()
        np.testing.assert_array_equal(read(np.ones(5)), expert(np.ones(5)))
    other = expert_of(random_arrays([5, 4, 2], seed=1))
    assert other.digest() != expert.digest()
    with pytest.raises(InputError, match="mine exists already; choose another --out, nothing was written"):
        save_expert(other, tmp_path / "mine")


ARRAYS = random_arrays([5, 4, 2])
BAD_ARRAYS = {
    "no layer": ({}, "must hold kernel_0"),
    "a layer is missing": ({name: array for name, array in ARRAYS.items() if name != "bias_0"}, "bias_0"),
    "an array too many": (ARRAYS | {"secret": np.zeros(3, np.float32)}, "secret"),
    "layers that do not fit": (ARRAYS | {"kernel_1": np.zeros((3, 2), np.float32)}, r"layer 1 .* \[3, 2\]"),
    "a bias that does not fit": (ARRAYS | {"bias_1": np.zeros(3, np.float32)}, r"layer 1 .* bias \[3\]"),
    "whole numbers": (ARRAYS | {"bias_1": np.zeros(2, int)}, "bias_1 .* floating-point"),
    "not finite": (ARRAYS | {"bias_1": np.array([0, np.nan], np.float32)}, "bias_1 .* finite"),
    "a shift that does not fit": (ARRAYS | {"input_shift": np.zeros(4, np.float32)}, r"input_shift .* \[5\]"),
    "a division by zero": (ARRAYS | {"input_scale": np.zeros(5, np.float32)}, "input_scale .* zeros"),
    "flat": ({"kernel_0": np.zeros(4, np.float32), "bias_0": np.zeros(4, np.float32)}, "layer 0"),
}


@pytest.mark.parametrize(("arrays", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_arrays_that_are_no_policy_are_refused(arrays, message):
    with pytest.raises(InputError, match=message):
        expert_of(arrays)


BAD_HEADERS = {
    "not JSON": ("{", "not JSON"),
    "deep": ("[" * 100_000, "not JSON"),
    "an endless number": ({"direction_scale": 10**400}, "direction_scale: expected a number, got 1000"),
    "a long text": ({"input": "x" * 9999}, "input: expected one of .{,300}$"),
    "not an object": ("[]", "expected an object"),
    "another format": ({"format": "other"}, "format: expected one of drol-policy, got 'other'"),
    "another version": ({"version": 2}, "version: expected one of 1, got 2"),
    "another network": ({"network": {"kind": "flow"}}, "network.kind: expected one of mlp"),
    "another activation": (
        {"network": {"kind": "mlp", "activation": "sine", "output": "tanh"}},
        "network.activation: expected one of .*relu.*, got 'sine'",
    ),
    "another input": ({"input": ["x"]}, "input: expected text"),
    "no number": ({"direction_scale": "ten"}, "direction_scale: expected a number"),
}


@pytest.mark.parametrize(("change", "message"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_header_that_is_wrong_is_refused(tmp_path, change, message):
    expert = expert_of(ARRAYS)
    save_expert(expert, tmp_path / "mine")
    text = change if isinstance(change, str) else json.dumps(expert.header() | change)
    (tmp_path / "mine" / "policy.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_expert(tmp_path / "mine")


def test_what_is_no_policy_folder_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="is not a folder with policy"):
            read_expert(path)


def test_pickled_and_truncated_weights_are_refused(tmp_path):
    save_expert(expert_of(ARRAYS), tmp_path / "mine")
    weights = tmp_path / "mine" / "policy.npz"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_expert(tmp_path / "mine")
    np.savez(weights, **ARRAYS, evil=np.array([{}], object))
    with pytest.raises(InputError):
        read_expert(tmp_path / "mine")


def test_layers_of_other_names_are_taken_in_the_order_of_the_file():
    arrays = random_arrays([3, 4, 2])
    theirs = {
        "trunk/kernel": arrays["kernel_0"], "trunk/bias": arrays["bias_0"],
        "mean/kernel": arrays["kernel_1"], "mean/bias": arrays["bias_1"],
        "log_std/kernel": arrays["kernel_1"], "log_std/bias": arrays["bias_1"],
        "in_shift": np.zeros(3, np.float32), "log_std": np.zeros(2, np.float32),
    }  # fmt: skip
    ours = rename_layers(theirs)
    assert ours.keys() == {*arrays, "input_shift", "log_std"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours[name], array)
    assert rename_layers(arrays).keys() == arrays.keys()


def test_actions_are_drawn_about_the_action_with_the_deviation_of_the_policy():
    arrays = random_arrays([3, 4, 2])
    values = np.ones(3)
    certain = expert_of(arrays, input="observation")
    np.testing.assert_array_equal(certain.draw(values, np.random.default_rng(0)), certain(values))
    expert = expert_of(arrays | {"log_std": np.log([0.1, 2.0]).astype(np.float32)}, input="observation")
    np.testing.assert_array_equal(expert(values), certain(values))
    generator = np.random.default_rng(0)
    drawn = np.stack([expert.draw(values, generator) for _ in range(4000)])
    np.testing.assert_allclose(drawn.mean(0), expert(values), atol=0.1)
    np.testing.assert_allclose(drawn.std(0), [0.1, 2.0], rtol=0.05)


def test_the_walker_of_d4rl_goes_where_it_is_told():
    import dataclasses

    from drol.tasks.ogbench.environment import make_ogbench
    from drol.tasks.ogbench.recipes import RECIPES
    from drol_reproduction.collecting.ogbench.mazes import play_maze
    from drol_reproduction.experts.expert import read_arrays

    walker = expert_of(rename_layers(read_arrays(expert_weights("d4rl_ant_walker"))))
    assert (walker.input_size, walker.action_size) == (29, 8)
    recipe = dataclasses.replace(RECIPES["antmaze-medium-stitch-v0"], rows=150)
    environment = make_ogbench(recipe.environment)
    distances = []
    for number in range(3):
        path = play_maze(environment, np.random.SeedSequence((0, number)), recipe, walker)["qpos"][:, :2]
        distances.append(np.linalg.norm(path[-1] - path[0]))
    environment.close()
    assert np.mean(distances) > 4  # a cell of the maze
