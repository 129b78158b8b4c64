"""What holds for every registered algorithm."""

import dataclasses
import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, random_batch, random_rows

from drol.algorithms import ALGORITHMS
from drol.checkpoints import load_tree, save_tree
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals

SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}
DRAWING = [name for name, kind in ALGORITHMS.items() if kind.draws_actions]
OBSERVATION = jnp.asarray([0.3, -1.0, 2.0])


@pytest.fixture(scope="module", params=ALGORITHMS)
def algorithm(request):
    return ALGORITHMS[request.param](**SMALL)


def test_hyperparameters_survive_json(algorithm):
    again = type(algorithm).from_dict(json.loads(json.dumps(algorithm.to_dict())))
    assert again.to_dict() == algorithm.to_dict()


def test_floats_are_traced_and_the_rest_is_static(algorithm):
    leaves = jax.tree.leaves(algorithm)
    floats = [field for field in dataclasses.fields(algorithm) if isinstance(field.default, float)]
    assert len(leaves) == len(floats)
    assert all(isinstance(leaf, float) for leaf in leaves)


def test_every_hyperparameter_has_a_help_text_and_a_valid_default(algorithm):
    for field in dataclasses.fields(algorithm):
        assert len(field.metadata["description"]) > 3
    type(algorithm)()
    for preset in algorithm.presets.values():
        type(algorithm)(**preset)


@pytest.mark.parametrize(("name", "bad"), [("discount", 1.5), ("expectile", 2.0), ("target_rate", 3.0)])
def test_a_share_above_one_is_refused(name, bad):
    kinds = [kind for kind in ALGORITHMS.values() if name in {field.name for field in dataclasses.fields(kind)}]
    assert len(kinds) > 1
    for kind in kinds:
        with pytest.raises(InputError, match=f"^{name} is {bad}; it must be from 0 to 1$"):
            kind(**{name: bad})


def test_a_learning_rate_of_zero_is_refused(algorithm):
    with pytest.raises(InputError, match=r"^learning_rate is 0.0; it must be from 1e-12 to 1$"):
        type(algorithm)(learning_rate=0)


def test_a_batch_is_answered_with_how_to_act_on_one(algorithm):
    policy = algorithm.init(jax.random.key(0), SPEC).policy
    with pytest.raises(InputError, match=r"the observation has shape \[4, 3\]; act takes one observation, so use"):
        algorithm.act(policy, jnp.zeros((4, 3)), jax.random.key(1))


def test_no_number_may_be_infinite_or_nan(algorithm):
    for field in dataclasses.fields(algorithm):
        for bad in (float("inf"), float("-inf"), float("nan")) if isinstance(field.default, float) else ():
            with pytest.raises(InputError, match=f"^{field.name} is {bad}; it must be "):
                type(algorithm)(**{field.name: bad})


def test_every_number_has_bounds(algorithm):
    for field in dataclasses.fields(algorithm):
        assert field.metadata["choices"] or type(field.default) is bool or field.metadata["minimum"] is not None
        assert field.metadata["choices"] or type(field.default) not in (int, tuple) or field.metadata["maximum"]


def act_once(algorithm, policy, key):
    return algorithm.act(policy, OBSERVATION, key, best_of=1)  # the best of many is often the same corner


def test_the_policy_acts_in_the_box_and_the_same_for_the_same_key(algorithm):
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    act = jax.jit(act_once)
    first, again, other = (act(algorithm, state.policy, jax.random.key(seed)) for seed in (0, 0, 1))
    assert first.shape == (SPEC.action_size,)
    assert np.abs(first).max() <= 1
    np.testing.assert_array_equal(first, again)
    assert algorithm.draws_actions == bool((first != other).any())


def test_the_sampler_acts_as_the_policy_does(algorithm):
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    sampler = algorithm.sampler(state.policy)
    for count in (1, 3) if algorithm.draws_actions else (1,):
        key = jax.random.key(count)
        action = algorithm.act(state.policy, OBSERVATION, key, best_of=count)
        np.testing.assert_allclose(sampler.act(OBSERVATION, sampler.draw_latents(key, count)), action, atol=1e-6)


def abstract_policy(algorithm):
    return jax.eval_shape(lambda key: algorithm.init(key, SPEC), jax.random.key(0)).policy


def test_best_of_is_at_least_one_and_one_where_nothing_is_drawn(algorithm):
    def act(policy, best_of):
        return algorithm.act(policy, OBSERVATION, jax.random.key(0), best_of)

    policy = abstract_policy(algorithm)
    for best_of in (None, 1, 3) if algorithm.draws_actions else (None, 1):
        action = jax.eval_shape(functools.partial(act, best_of=best_of), policy)
        assert action.shape == (SPEC.action_size,)
    with pytest.raises(InputError, match="best_of is 0; it must be a whole number, at least 1"):
        jax.eval_shape(functools.partial(act, best_of=0), policy)
    if not algorithm.draws_actions:
        with pytest.raises(InputError, match=f"best_of is 3, but {type(algorithm).__name__} .*; it must be 1"):
            jax.eval_shape(functools.partial(act, best_of=3), policy)


@pytest.mark.parametrize("name", DRAWING)
def test_critics_that_a_policy_carries_value_actions_of_a_state(name):
    algorithm = ALGORITHMS[name](**SMALL)
    observation, action = jnp.zeros((5, *SPEC.observation_shape)), jnp.zeros((5, SPEC.action_size))
    values = jax.eval_shape(
        lambda policy: algorithm.critics(policy)(observation, action),  # pyright: ignore
        abstract_policy(algorithm),
    )
    assert values.shape == (2, 5)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in DRAWING])
def test_a_policy_that_draws_nothing_carries_no_critics(name):
    algorithm = ALGORITHMS[name](**SMALL)
    assert algorithm.critics(abstract_policy(algorithm)) is None


def test_training_several_seeds_moves_every_network_and_keeps_numbers_finite(algorithm, tmp_path):
    dataset = Dataset.from_rows(**random_rows([40, 40]))
    keys = seed_keys((0, 1))
    start = init_seeds(algorithm, keys, dataset.spec)
    before = jax.tree.map(jnp.copy, start)
    totals = zero_totals(algorithm, start, dataset, keys)
    states, totals = train_chunk(algorithm, start, totals, dataset, keys, 1, 4)
    assert all(np.isfinite(total).all() and total.shape == (2,) for total in totals.values())
    moved = jax.tree.map(lambda old, new: bool((old != new).any()), before, states)
    # Biases of a first gradient may be zero; kernels are not.
    assert all(
        flag for path, flag in jax.tree_util.tree_leaves_with_path(moved) if "kernel" in jax.tree_util.keystr(path)
    )
    save_tree(tmp_path / "state", states, {})
    assert eqx.tree_equal(load_tree(tmp_path / "state", states), states)


def test_critics_may_have_widths_of_their_own(algorithm):
    if "critic_hidden_sizes" not in algorithm.to_dict():
        assert type(algorithm).__name__ == "BC"  # which has none
        return

    def kernel_widths(**changes):
        """The output widths of all kernels of a state, by the part of the state that they belong to."""
        changed = dataclasses.replace(algorithm, **changes)
        state = jax.eval_shape(lambda key: changed.init(key, SPEC), jax.random.key(0))
        paths = [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(state)]
        return {path: leaf.shape[-1] for path, leaf in paths if "kernel" in path}

    found = kernel_widths(critic_hidden_sizes=(5, 5))
    for path, width in kernel_widths().items():
        valued = "critic" in path or "value" in path
        assert found[path] == (5 if valued and width == 16 else width), path
    assert {width for path, width in found.items() if "actor" in path or "flow" in path} == {16, SPEC.action_size}


def test_an_update_is_the_same_under_jit_and_vmap(algorithm):
    batch, key = random_batch(16), jax.random.key(3)
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    alone, _ = jax.jit(algorithm.update)(state, batch, key)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), state)
    together, _ = jax.jit(jax.vmap(algorithm.update, in_axes=(0, None, None)))(both, batch, key)
    for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        np.testing.assert_allclose(one, two[1], rtol=1e-4, atol=1e-5)


def test_an_unknown_hyperparameter_is_refused_by_name(algorithm):
    with pytest.raises(InputError, match=r"unknown hyperparameter of .* 'hidden_size'; did you mean hidden_sizes"):
        type(algorithm).from_dict({"hidden_size": (3,)})


def another_value(field):
    """A value that is allowed and far from the default: of floats a hundredth, so that caps and clips bite."""
    if field.metadata["choices"]:
        return next(choice for choice in field.metadata["choices"] if choice != field.default)
    if isinstance(field.default, float):
        return field.default / 100 or 0.5
    least = field.metadata["minimum"]
    return {bool: not field.default, int: least if field.default != least else 3, tuple: (8,)}[type(field.default)]


def what_happens(algorithm, totals):
    """Yield the initial state, the state after each of some updates, and what the first of them does.

    Every third transition of the data is the last of its episode.
    """
    dataset, keys, key = Dataset.from_rows(**random_rows([3] * 20)), seed_keys((0,)), jax.random.key(1)
    states = init_seeds(algorithm, keys, SPEC)
    yield states
    for step in range(1, 5):
        states, _ = train_chunk(algorithm, states, totals, dataset, keys, step, step)
        yield states
        if step == 1:
            state = jax.tree.map(lambda leaf: leaf[0], states)
            yield algorithm.act(state.policy, OBSERVATION, key)
            yield algorithm.act(state.policy, OBSERVATION, key, best_of=1)  # the best of many may be the same corner
            if algorithm.draws_actions:
                best = functools.partial(algorithm.act, state.policy, best_of=16)
                yield jax.vmap(best)(random_batch(64).observation, jax.random.split(key, 64))
            yield algorithm.diagnose(state, random_batch(16), key)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_hyperparameter_changes_something(name):
    """The test compiles nothing: most values would need a separate program, and the first difference is enough."""
    algorithm = ALGORITHMS[name](hidden_sizes=(12,), batch_size=16)
    like = jax.eval_shape(lambda key: algorithm.init(key, SPEC), jax.random.key(0))
    metrics = jax.eval_shape(algorithm.update, like, random_batch(16), jax.random.key(0))[1]
    totals = {metric: jnp.zeros(1) for metric in metrics}
    pending = {
        field.name: what_happens(dataclasses.replace(algorithm, **{field.name: another_value(field)}), totals)
        for field in dataclasses.fields(algorithm)
    }
    with jax.disable_jit():
        for expected in what_happens(algorithm, totals):
            pending = {each: other for each, other in pending.items() if eqx.tree_equal(expected, next(other))}
            if not pending:
                break
    assert not list(pending)
