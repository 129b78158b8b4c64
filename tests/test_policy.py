import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import OBSERVATION_SIZE, SPEC, TINY, random_state, random_tree, tiny_config, tiny_task

from drol.algorithms import BC, IFQL
from drol.checkpoints import ARRAYS, MANIFEST, manifest_digest, read_metadata, save_tree
from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.policy import Policy, save_policies
from drol.runs.run import load_policy
from drol.training.train import train

SEEDS = (4, 0, 9)


@pytest.fixture(scope="module")
def stacked():
    """The networks of three seeds, and a standardisation that matters."""
    networks = [random_state(TINY, seed=10 * number).policy for number in range(3)]
    standardisation = Standardisation(jnp.asarray([1.0, -2.0, 0.5]), jnp.asarray([2.0, 0.5, 1.0]))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks), standardisation


@pytest.fixture
def folder(tmp_path, stacked):
    folder = tmp_path / "000000012"
    save_policies(folder, TINY, stacked, SPEC, SEEDS, task="toy", step=12)
    return folder


@pytest.mark.parametrize(("seed", "index"), [(4, 0), (0, 1), (9, 2), (None, 0)])
def test_each_seed_comes_back_as_it_was_saved(folder, stacked, seed, index):
    found = Policy.load(folder, seed)
    networks = jax.tree.map(lambda leaf: leaf[index], stacked[0])
    jax.tree.map(np.testing.assert_array_equal, found.networks, networks)
    jax.tree.map(np.testing.assert_array_equal, found.standardisation, stacked[1])
    assert jax.tree.structure(found.networks) == jax.tree.structure(networks)
    assert found.algorithm.to_dict() == TINY.to_dict()


def test_what_the_policies_are_is_saved_with_them(folder):
    metadata = read_metadata(folder)
    assert metadata["algorithm"] == "drol"
    assert metadata["seeds"] == [4, 0, 9]
    assert metadata["observation_shape"] == [3]
    assert metadata["action_size"] == 2
    assert (metadata["task"], metadata["step"]) == ("toy", 12)


def test_a_policy_standardises_what_it_sees(folder):
    policy = Policy.load(folder, 0)
    observation = np.asarray([0.3, 0.2, -0.1])
    plain = Policy(TINY, policy.networks, Standardisation.identity(SPEC))
    standardised = (observation - np.asarray([1.0, -2.0, 0.5])) / np.asarray([2.0, 0.5, 1.0])
    found = policy.act(observation, seed=5)
    np.testing.assert_allclose(found, plain.act(standardised, seed=5), rtol=0, atol=1e-6)
    assert not np.allclose(found, plain.act(observation, seed=5), atol=1e-3)


def test_a_batch_of_observations_is_acted_on_row_by_row_with_keys_of_their_own(folder):
    policy = Policy.load(folder)
    observations = np.random.default_rng(0).normal(size=(5, OBSERVATION_SIZE))
    together = policy.act(observations, seed=1)
    assert together.shape == (5, 2)
    for row, key in enumerate(jax.random.split(jax.random.key(1), 5)):
        np.testing.assert_allclose(together[row], policy.draw(observations[row], key), rtol=0, atol=1e-6)
    same = policy.act(np.tile(observations[0], (50, 1)), seed=1)
    assert len(np.unique(same, axis=0)) > 40  # each row draws for itself


@pytest.mark.parametrize("best_of", [None, 1, 3])
def test_the_same_seed_gives_the_same_action_alone_in_a_batch_and_compiled(folder, best_of):
    policy = Policy.load(folder, 9)
    observation = np.asarray([0.3, 0.2, -0.1])
    alone = policy.act(observation, 5, best_of)
    assert alone.shape == (2,)
    assert isinstance(alone, np.ndarray)
    np.testing.assert_array_equal(alone, policy.act([0.3, 0.2, -0.1], seed=5, best_of=best_of))
    np.testing.assert_array_equal(alone, policy.act(observation[None], 5, best_of)[0])
    key = jax.random.split(jax.random.key(5), 1)[0]
    inside = jax.jit(lambda policy, observation: policy.draw(observation, key, best_of))(policy, observation)
    np.testing.assert_allclose(alone, inside, rtol=0, atol=1e-6)
    assert not np.allclose(alone, policy.act(observation, 6, best_of), atol=1e-4)


def test_each_policy_acts_with_its_own_weights_after_others_have_acted(folder):
    observation = np.asarray([0.3, 0.2, -0.1])
    policies = {seed: Policy.load(folder, seed) for seed in SEEDS}
    actions = [policy.act(observation, seed=0) for policy in policies.values()]
    assert len(np.unique(np.round(actions, 4), axis=0)) == 3
    doubled = jax.tree.map(lambda leaf: 2 * leaf, policies[4])
    assert not np.allclose(doubled.act(observation, seed=0), actions[0], atol=1e-3)


def test_a_controller_draws_one_action_after_the_other(folder):
    policy = Policy.load(folder, 0)
    observation = np.asarray([0.3, 0.2, -0.1])
    control, again, other = policy.for_control(seed=3), policy.for_control(seed=3), policy.for_control(seed=4)
    actions = [control(observation) for _ in range(30)]
    for step, action in enumerate(actions):
        key = jax.random.fold_in(jax.random.key(3), step)
        np.testing.assert_allclose(action, policy.draw(observation, key), rtol=0, atol=1e-6)
        np.testing.assert_array_equal(action, again([0.3, 0.2, -0.1]))
    assert len(np.unique(np.round(actions, 5), axis=0)) > 5  # many are in a corner of the box
    assert not np.allclose([other(observation) for _ in range(30)], actions, atol=1e-4)


def test_a_controller_takes_the_best_of_several_actions(folder):
    policy = Policy.load(folder, 0)
    observation = np.asarray([0.3, 0.2, -0.1])
    best = policy.for_control(seed=0, best_of=8)(observation)
    np.testing.assert_allclose(
        best, policy.draw(observation, jax.random.fold_in(jax.random.key(0), 0), 8), rtol=0, atol=1e-6
    )


def refusal(call, *arguments, **named):
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_observations_of_another_shape_or_not_finite_are_refused(folder):
    policy = Policy.load(folder, 0)
    control = policy.for_control()
    for call, several in ((policy.act, ", or a batch of such"), (control, "")):
        for wrong in ([2], [], [2, 2, 3], [2, 4]):
            words = f"the observation has shape {wrong}; this policy takes [3]{several}"
            assert refusal(call, np.zeros(wrong)) == words
        assert "NaN, infinite or too large" in refusal(call, [0.0, float("nan"), 0.0])
        assert "NaN, infinite or too large" in refusal(call, [0.0, float("inf"), 0.0])
    assert refusal(control, np.zeros((1, 3))) == "the observation has shape [1, 3]; this policy takes [3]"


def test_without_a_seed_each_call_draws_anew(folder):
    policy = Policy.load(folder, 0)
    assert len({policy.act(np.zeros(3)).tobytes() for _ in range(20)}) > 1
    batch = np.zeros((2, 3))
    assert (policy.act(batch) != policy.act(batch)).any()
    controls = [policy.for_control() for _ in range(2)]
    first, second = ([control(np.zeros(3)).tobytes() for _ in range(10)] for control in controls)
    assert first != second


def test_masked_arrays_are_rejected(folder):
    policy = Policy.load(folder, 0)
    masked = np.ma.masked_array(np.zeros(3), [False, True, False])
    for call in (policy.act, policy.for_control()):
        assert refusal(call, masked).startswith("the observation is a masked array; decide what a masked value means")
    named = Dimensions(("x", "y", "z"))
    assert refusal(named.take, {"x": 0.0, "y": np.ma.masked_array(1.0, True), "z": 0.0}).startswith(
        "the observation is a masked array"
    )


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "0", True])
def test_a_seed_that_is_none_is_refused(folder, seed):
    policy = Policy.load(folder, 0)
    for call in (lambda: policy.act(np.zeros(3), seed), lambda: policy.for_control(seed)):
        assert refusal(call).startswith(f"seed is {seed!r}; it must be a whole number from 0 to")


def initial_policy(algorithm):
    networks = jax.jit(lambda key: algorithm.init(key, SPEC).policy)(jax.random.key(0))
    return Policy(algorithm, networks, Standardisation.identity(SPEC))


def test_best_of_is_refused_where_there_is_nothing_to_choose_from():
    policy = initial_policy(BC(hidden_sizes=(8,)))
    for call in (lambda n: policy.act(np.zeros(3), 0, n), lambda n: policy.for_control(0, n)):
        assert "best_of is 4" in refusal(call, 4)
        call(1)
    for best_of in (0, -1):
        assert f"best_of is {best_of}" in refusal(initial_policy(TINY).act, np.zeros(3), 0, best_of)


def test_a_method_with_a_number_of_its_own_uses_it_unless_another_is_given():
    policy = initial_policy(IFQL(hidden_sizes=(8,), num_samples=8))
    observation = np.asarray([0.3, 0.2, -0.1])
    own, eight, one = (policy.act(observation, 0, best_of) for best_of in (None, 8, 1))
    np.testing.assert_array_equal(own, eight)
    assert not np.allclose(own, one, atol=1e-4)


def test_a_seed_that_is_not_there_is_answered_with_those_that_are(folder):
    with pytest.raises(InputError) as caught:
        Policy.load(folder, 5)
    assert str(caught.value) == f"seed 5 is not in {folder}; it has 4 0 9"


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_damaged_policy_is_refused_in_one_line(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        Policy.load(folder, 0)
    assert str(caught.value).startswith(f"the policy in {folder} cannot be used: {name} ")
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_absent_or_no_policy_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"the policy in .* cannot be used: manifest\.json cannot be read"):
        Policy.load(tmp_path / "absent")
    save_tree(tmp_path / "checkpoint", random_tree({"a": jax.ShapeDtypeStruct((2,), jnp.float32)}, 0), {"step": 3})
    with pytest.raises(InputError, match="checkpoint"):
        Policy.load(tmp_path / "checkpoint")


def test_actions_are_in_the_box_that_the_data_was_scaled_from(tmp_path):
    task = tiny_task(None, action_box=ActionBox((0.0, -10.0), (4.0, 10.0)))
    train(tiny_config(seeds=(0,), steps=1), tmp_path / "run", task, quiet=True)
    policy = Policy.load(tmp_path / "run" / "policies" / "000000001")
    observations = np.random.default_rng(0).normal(size=(20, 3))
    unit = Policy(policy.algorithm, policy.networks, policy.standardisation).act(observations, seed=0)
    np.testing.assert_allclose(policy.act(observations, seed=0), unit * [2, 10] + [2, 0], rtol=1e-5, atol=1e-5)
    control = policy.for_control(seed=0)(observations[0])
    key = jax.random.fold_in(jax.random.key(0), 0)
    unit_control = np.asarray(policy.draw(observations[0], key))
    np.testing.assert_allclose(control, unit_control * [2, 10] + [2, 0], rtol=1e-5, atol=1e-5)
    assert policy.act(observations).dtype == unit.dtype == np.float32


def test_a_policy_is_loaded_from_the_folder_of_its_run_or_of_its_step(tmp_path):
    path = tmp_path / "run"
    run = train(tiny_config(steps=2), path, tiny_task(None), quiet=True)
    observation = np.asarray([0.3, 0.2, -0.1])
    newest = load_policy(path).act(observation, seed=0)
    np.testing.assert_array_equal(newest, run.policy().act(observation, seed=0))
    np.testing.assert_array_equal(newest, run.policy(step=2, seed=0).act(observation, seed=0))
    np.testing.assert_array_equal(newest, load_policy(path / "policies" / "000000002").act(observation, seed=0))
    for other in (load_policy(path, step=0), load_policy(path, seed=7)):
        assert not np.allclose(newest, other.act(observation, seed=0), atol=1e-5)
    with pytest.raises(InputError, match=r"no policy of step 1 in .*; it has 0, 2"):
        load_policy(path, step=1)
    with pytest.raises(InputError, match="is not a run folder"):
        load_policy(tmp_path / "nothing")


FORGERIES = {
    "a huge observation": ({"observation_shape": [10**12]}, "observation_shape: expected one size or three"),
    "many dimensions": ({"observation_shape": [3] * 30}, "observation_shape: expected one size or three"),
    "a product that is huge": (
        {"observation_shape": [10**3, 10**3, 10**3]},
        "observation_shape: expected one size or three",
    ),
    "a negative size": ({"observation_shape": [-3]}, "observation_shape[0]: expected an integer >= 1, got -3"),
    "a text for a shape": ({"observation_shape": "3"}, "observation_shape: expected a list, got '3'"),
    "another shape than the arrays": ({"observation_shape": [4]}, "is expected"),
    "no actions": ({"action_size": 0}, "action_size: expected an integer >= 1, got 0"),
    "a text for a size": ({"action_size": "2"}, "action_size: expected an integer, got '2'"),
    "truth for a size": ({"action_size": True}, "action_size: expected an integer, got True"),
    "a number for seeds": ({"seeds": 5}, "seeds: expected a list, got 5"),
    "no seeds": ({"seeds": []}, "seeds: expected a list of length >= 1, got []"),
    "seeds twice": ({"seeds": [1, 1, 1]}, "seeds: expected unique numbers, got [1, 1, 1]"),
    "very many seeds": ({"seeds": list(range(10**5))}, "seeds: expected a list of length <= 64, got [0, 1, 2"),
    "a number for the algorithm": ({"algorithm": 5}, "algorithm: expected text, got 5"),
    "a list for hyperparameters": ({"hyperparameters": [1]}, "hyperparameters: expected an object, got [1]"),
    "20,000 layers": ({"hyperparameters": {"hidden_sizes": [8] * 20_000}}, "hidden_sizes has 20,000 entries"),
    "layers of 10^9": ({"hyperparameters": {"hidden_sizes": [10**9] * 2}}, "hidden_sizes is (1000000000, 1000000000)"),
    "the widest layers": ({"hyperparameters": {"hidden_sizes": [65536] * 64}}, "have another structure"),
    "a layer in a layer": ({"hyperparameters": {"hidden_sizes": [[8]]}}, "hidden_sizes is ([8],)"),
    "a text for the box": ({"action_box": "ab"}, "action_box: expected a list or null, got 'ab'"),
    "letters in the box": ({"action_box": [["a", "b"], ["c", "d"]]}, "action_box[0][0]: expected a number, got 'a'"),
    "a box of other actions": ({"action_box": [[0.0], [1.0]]}, "action_box: expected 2 lowest and 2 highest values"),
    "a box without an end": ({"action_box": [[0.0, 0.0], [1.0, float("inf")]]}, "are no box"),
    "a box upside down": ({"action_box": [[1.0, 1.0], [0.0, 0.0]]}, "are no box"),
}


def forge(folder, metadata):
    """Write other metadata with a right checksum."""
    manifest = json.loads((folder / MANIFEST).read_text()) | {"metadata": metadata}
    (folder / MANIFEST).write_text(json.dumps(manifest | {"manifest_sha256": manifest_digest(manifest)}))


@pytest.mark.parametrize(("changes", "words"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_policy_with_right_checksums_is_refused_before_anything_is_made_of_it(folder, changes, words):
    forge(folder, read_metadata(folder) | changes)
    message = refusal(Policy.load, folder)
    assert message.startswith(f"the policy in {folder} cannot be used: ")
    assert words in message
    assert len(message) < 1000


@pytest.mark.parametrize("metadata", [[], None, 5, "text", {}])
def test_metadata_of_another_kind_are_refused(folder, metadata):
    forge(folder, metadata)
    assert refusal(Policy.load, folder).startswith(f"the policy in {folder} cannot be used: ")


def test_an_algorithm_that_nobody_registered_is_named(folder):
    forge(folder, read_metadata(folder) | {"algorithm": "mine"})
    words = "unknown algorithm 'mine'. If it is yours, add --import MODULE, or import its module in Python."
    assert refusal(Policy.load, folder).startswith(words)


@pytest.mark.parametrize("wrong", [["a", "b", "c"], [1j, 0, 0], [None, 0.0, 0.0], [[1.0], [2.0, 3.0]]])
def test_observations_that_are_no_numbers_are_refused(folder, wrong):
    policy = Policy.load(folder, 0)
    for call in (policy.act, policy.for_control()):
        assert refusal(call, wrong).startswith("the observation is ")


def test_what_is_too_large_for_a_network_is_refused_without_a_warning(folder):
    policy = Policy.load(folder, 0)
    for call in (policy.act, policy.for_control()):
        assert "too large" in refusal(call, np.asarray([0.0, 1e300, 0.0]))
    policy.act(np.asarray([1, 0, 1], np.uint8))


def named_policy(folder):
    policy = Policy.load(folder)
    names = Dimensions(("x", "y", "z"), ("m", "m", "m"))
    return dataclasses.replace(policy, observation_dimensions=names)


def test_observations_are_taken_by_name(folder):
    policy = named_policy(folder)
    assert policy.observation_names == ("x", "y", "z")
    assert policy.action_names is None
    named = {"z": 0.3, "x": 0.1, "y": -0.2}
    expected = policy.act([0.1, -0.2, 0.3], seed=4)
    np.testing.assert_array_equal(policy.act(named, seed=4), expected)
    batch = {name: [value, 2 * value] for name, value in named.items()}
    np.testing.assert_array_equal(policy.act(batch, seed=4), policy.act([[0.1, -0.2, 0.3], [0.2, -0.4, 0.6]], seed=4))
    np.testing.assert_array_equal(policy.for_control(seed=2)(named), policy.for_control(seed=2)([0.1, -0.2, 0.3]))


def test_names_that_are_missing_or_unknown_are_refused(folder):
    policy = named_policy(folder)
    for call in (policy.act, policy.for_control()):
        assert "lacks the name 'z'; this policy takes x, y, z" in refusal(call, {"x": 0, "y": 0})
        assert "has an unknown name 'w'" in refusal(call, {"x": 0, "y": 0, "z": 0, "w": 0})
    assert "knows no names" in refusal(Policy.load(folder).act, {"x": 0})


def test_names_are_saved_with_policies(tmp_path, stacked):
    names = Dimensions(("x", "y", "z")).to_dict()
    folder = tmp_path / "named"
    save_policies(folder, TINY, stacked, SPEC, SEEDS, observation_dimensions=names)
    assert Policy.load(folder).observation_names == ("x", "y", "z")
    for odd in (names | {"names": ["x", "y"]}, names | {"names": ["x", "x", "y"]}, 5):
        shutil.rmtree(folder)
        save_policies(folder, TINY, stacked, SPEC, SEEDS, observation_dimensions=odd)
        assert "cannot be used" in refusal(Policy.load, folder)
