import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, TINY, random_rows

from drol.algorithms.base import Algorithm, hyperparameter
from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.training.compiled import (
    DIAGNOSTICS,
    EXPLORATION,
    VALIDATION,
    diagnose_seeds,
    init_seeds,
    seed_keys,
    train_chunk,
    zero_totals,
)

SEEDS = (0, 7, 3)


class Tally(Algorithm):
    """Compiles in no time: counts its updates, adds up rewards and keeps the last key."""

    rate: float = hyperparameter(0.5, "what an update adds")
    batch_size: int = hyperparameter(8, "transitions in one update")

    def init(self, key, spec):
        return {"sum": jax.random.uniform(key), "key": jnp.zeros(2, jnp.uint32)}

    def update(self, state, batch, key):
        traced.append(self.batch_size)
        state = {"sum": state["sum"] + self.rate, "key": jax.random.key_data(key)}
        return state, {"one": jnp.ones(()), "reward": batch.reward.mean()}

    def act(self, policy, observation, key, best_of=None):
        raise NotImplementedError


traced: list[Any] = []  # of every time that an update of Tally was traced


@pytest.fixture(scope="module")
def dataset():
    return Dataset.from_rows(**random_rows([50, 100, 50]))


def train(algorithm, dataset, seeds, cuts):
    """The states and totals after chunks that end with the steps `cuts`."""
    keys = seed_keys(seeds)
    states = init_seeds(algorithm, keys, SPEC)
    totals = zero_totals(algorithm, states, dataset, keys)
    first = 1
    for last in cuts:
        states, totals = train_chunk(algorithm, states, totals, dataset, keys, first, last)
        first = last + 1
    return states, totals


@pytest.fixture(scope="module")
def trained(dataset):
    return train(TINY, dataset, SEEDS, [24])


@pytest.mark.parametrize("cuts", [range(1, 25), (1, 2, 17, 24), (23, 24)], ids=["ones", "uneven", "late"])
def test_cutting_a_run_into_other_chunks_changes_no_bit(dataset, trained, cuts):
    found = train(TINY, dataset, SEEDS, cuts)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(trained), strict=True):
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_a_seed_among_three_agrees_with_the_same_seed_alone(dataset, trained):
    states, totals = train(TINY, dataset, SEEDS[1:2], [24])
    for ours, theirs in zip(jax.tree.leaves((states, totals)), jax.tree.leaves(trained), strict=True):
        np.testing.assert_allclose(ours[0], theirs[1], rtol=1e-5, atol=1e-5)


def test_seeds_start_and_end_differently(trained):
    states, _ = trained
    for leaf in (*jax.tree.leaves(states.actor.network), *jax.tree.leaves(states.critic.network)):
        assert not np.array_equal(leaf[0], leaf[1])
    np.testing.assert_array_equal(states.actor.optimiser.count, [24, 24, 24])


def test_totals_are_the_sums_of_the_metrics_of_all_updates(dataset):
    _, totals = train(Tally(), dataset, SEEDS, [5, 9])
    np.testing.assert_array_equal(totals["one"], [9, 9, 9])
    expected = []
    for seed in SEEDS:
        steps = [jax.random.split(jax.random.fold_in(jax.random.key(seed), step)) for step in range(1, 10)]
        expected.append(sum(float(dataset.sample(batch_key, 8).reward.mean()) for batch_key, _ in steps))
    np.testing.assert_allclose(totals["reward"], expected, rtol=1e-5)


def test_the_key_of_an_update_follows_from_its_seed_and_its_number(dataset):
    states, _ = train(Tally(), dataset, SEEDS, [4])
    for row, seed in enumerate(SEEDS):
        key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 4))[1]
        np.testing.assert_array_equal(states["key"][row], jax.random.key_data(key))


def test_zero_totals_are_zeros_for_each_seed_and_metric(dataset):
    keys = seed_keys(SEEDS)
    states = init_seeds(TINY, keys, SPEC)
    totals = zero_totals(TINY, states, dataset, keys)
    assert totals.keys() == {"actor_loss", "routed_bc_loss", "actor_q", "critic_loss", "data_q"}
    for value in totals.values():
        assert value.dtype == jnp.float32
        np.testing.assert_array_equal(value, np.zeros(3))


def test_networks_that_start_equal_have_memory_of_their_own():
    states = init_seeds(TINY, seed_keys(SEEDS), SPEC)
    for online, target in zip(*map(jax.tree.leaves, (states.critic.network, states.target_critic)), strict=True):
        np.testing.assert_array_equal(online, target)
        assert online.unsafe_buffer_pointer() != target.unsafe_buffer_pointer()


def test_another_float_or_number_of_updates_compiles_nothing(dataset):
    train(Tally(rate=0.5), dataset, SEEDS, [3])
    before = len(traced)
    states, _ = train(Tally(rate=0.25), dataset, SEEDS, [2, 7])
    assert len(traced) == before
    start = init_seeds(Tally(), seed_keys(SEEDS), SPEC)
    np.testing.assert_allclose(states["sum"] - start["sum"], 7 * 0.25, rtol=1e-6)  # the new value was used
    train(Tally(batch_size=4), dataset, SEEDS, [3])
    assert traced[before:] == [4] * (len(traced) - before) != []


@pytest.mark.parametrize("field", dataclasses.fields(DROL), ids=lambda field: field.name)
def test_floats_of_drol_are_data_and_all_else_is_part_of_the_program(field):
    changed = {
        float: lambda value: value / 2,
        int: lambda value: value + 1,
        bool: lambda value: not value,
        str: lambda value: next(each for each in field.metadata["choices"] if each != value),
        tuple: lambda value: (*value, 8),
    }[type(field.default)](field.default)
    other = DROL(**{field.name: changed})
    same_program = jax.tree.structure(other) == jax.tree.structure(DROL())
    assert same_program == isinstance(field.default, float)


def test_diagnostics_are_for_each_seed_and_follow_from_the_step(dataset, trained):
    states, _ = trained
    keys = seed_keys(SEEDS)
    first, again, later = (diagnose_seeds(TINY, states, dataset, keys, step, DIAGNOSTICS) for step in (24, 24, 25))
    assert first["routed_bc_loss"].shape == (3,)
    assert len(set(np.asarray(first["routed_bc_loss"]).tolist())) == 3
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert not np.array_equal(first["routed_bc_loss"], later["routed_bc_loss"])
    assert eqx.tree_equal(jax.tree.structure(first), jax.tree.structure(later))


def test_no_key_is_used_twice():
    """The two keys of an update, of exploration and of the two diagnostics differ, for neighbouring steps too."""
    key, found = jax.random.key(3), []
    for step in range(1, 6):
        own = jax.random.fold_in(key, step)
        purposes = [jax.random.fold_in(own, purpose) for purpose in (EXPLORATION, DIAGNOSTICS, VALIDATION)]
        diagnosed = [each for purpose in purposes[1:] for each in jax.random.split(purpose)]
        found += [jax.random.key_data(each).tolist() for each in (own, *jax.random.split(own), *purposes, *diagnosed)]
    assert len({tuple(each) for each in found}) == len(found) == 50


def test_validation_draws_another_batch_than_the_diagnostics_of_training(dataset, trained):
    states, _ = trained
    both = [diagnose_seeds(TINY, states, dataset, seed_keys(SEEDS), 24, each) for each in (DIAGNOSTICS, VALIDATION)]
    assert not np.array_equal(both[0]["routed_bc_loss"], both[1]["routed_bc_loss"])
