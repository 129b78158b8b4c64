"""What holds for every registered algorithm."""

import dataclasses
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
pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module", params=ALGORITHMS)
def algorithm(request):
    kind = ALGORITHMS[request.param]
    # The best of many samples of an untrained flow is always the same corner.
    return kind(**SMALL, **({"num_samples": 1} if request.param == "ifql" else {}))


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


def test_the_policy_acts_in_the_box_and_the_same_for_the_same_key(algorithm):
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    observation = jnp.asarray([0.3, -1.0, 2.0])
    act = jax.jit(lambda policy, key: algorithm.act(policy, observation, key))
    first, again, other = (act(state.policy, jax.random.key(seed)) for seed in (0, 0, 1))
    assert first.shape == (SPEC.action_size,)
    assert np.abs(first).max() <= 1
    np.testing.assert_array_equal(first, again)
    assert algorithm.draws_actions == bool((first != other).any())


def test_critics_that_a_policy_carries_value_actions_of_a_state(algorithm):
    policy = jax.eval_shape(lambda key: algorithm.init(key, SPEC), jax.random.key(0)).policy
    critics = algorithm.critics(policy)
    if critics is None:
        assert not hasattr(policy, "critic")
        return
    observation, action = jnp.zeros((5, *SPEC.observation_shape)), jnp.zeros((5, SPEC.action_size))
    values = jax.eval_shape(lambda policy: algorithm.critics(policy)(observation, action), policy)
    assert values.shape == (2, 5)


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


def test_an_update_is_the_same_under_jit_and_vmap(algorithm):
    batch, key = random_batch(16), jax.random.key(3)
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    alone, _ = jax.jit(algorithm.update)(state, batch, key)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), state)
    together, _ = jax.jit(jax.vmap(algorithm.update, in_axes=(0, None, None)))(both, batch, key)
    for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        np.testing.assert_allclose(one, two[1], rtol=1e-4, atol=1e-5)


def test_an_unknown_hyperparameter_is_refused_by_name(algorithm):
    with pytest.raises(InputError, match="has no hyperparameter 'hidden_size'; did you mean hidden_sizes"):
        type(algorithm).from_dict({"hidden_size": (3,)})
