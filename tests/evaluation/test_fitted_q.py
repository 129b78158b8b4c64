"""Fitted-Q evaluation where the value is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import SPEC, random_rows, tiny_task

from drol.algorithms.base import Algorithm, hyperparameter
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.evaluation import fitted_q
from drol.evaluation.fitted_q import (
    bootstrap_interval,
    data_values,
    fit,
    initial_observations,
    policy_actions,
    policy_values,
    prepare,
)
from drol.evaluation.held_out import split
from drol.policy import Policy

DISCOUNT = 0.8


@pytest.fixture(scope="module", autouse=True)
def small():
    """Networks and batches of a size that tests can wait for."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"START_UPDATES": 200, "HIDDEN_SIZES": (32, 32), "BATCH_SIZE": 128}.items():
            patch.setattr(fitted_q, name, value)
        yield


class Constant(Algorithm):
    """Always the same action."""

    action: float = hyperparameter(0.0, "both numbers of the action")
    batch_size: int = hyperparameter(8, "transitions")
    draws_actions = False

    def init(self, key, spec):
        raise NotImplementedError

    def update(self, state, batch, key):
        raise NotImplementedError

    def act(self, policy, observation, key, best_of=None):
        return jnp.full(2, self.action)


def constant(action: float) -> Policy:
    return Policy(Constant(action), (), Standardisation.identity(SPEC))


@pytest.fixture(scope="module")
def part():
    """The reward is the first number of the action and nothing ends: to do c is worth `c / (1 - gamma)`."""
    rows = random_rows([50] * 40)
    rows["reward"], rows["continues"] = rows["action"][:, 0], np.ones(len(rows["action"]), np.float32)
    return split(tiny_task(train=Dataset.from_rows(**rows)))[0]


@pytest.fixture(scope="module")
def data(part):
    return prepare(part, DISCOUNT)


@pytest.mark.parametrize("action", [-0.6, 0.5])
def test_the_value_of_a_policy_is_found_from_data_of_another(part, data, action):
    fitted = fit(data, constant(action), 600, jax.random.key(0))
    values = policy_values(constant(action), fitted, initial_observations(part), jax.random.key(1), 1)
    assert values.shape == (fitted_q.CRITICS, 40)
    truth = action / (1 - DISCOUNT)
    assert float(values.mean()) == pytest.approx(truth, abs=0.35)
    low, high = bootstrap_interval(np.asarray(values))
    assert low < float(values.mean()) < high


def test_what_was_fitted_is_the_same_again_for_the_same_key(data):
    policy = constant(0.1)
    first, again = (fit(data, policy, 20, jax.random.key(3)) for _ in range(2))
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_start_is_fitted_to_the_returns_of_the_data(data):
    batch = data.dataset.take(data.index)
    values = data_values(data.start, batch.observation, batch.action)
    assert float(values.mean()) == pytest.approx(float(data.discounted_return.mean()), abs=0.2)
    assert (float(data.lowest), float(data.highest[0])) == pytest.approx(
        tuple(np.asarray([-0.99, 0.99]) / (1 - DISCOUNT)), rel=0.02
    )


def test_weights_count_how_often_a_whole_trajectory_was_drawn(part, data):
    weight = np.asarray(data.weight)
    numbers = part.trajectories.number
    per_trajectory = weight[:, part.trajectories.first]
    np.testing.assert_array_equal(weight, per_trajectory[:, numbers])
    np.testing.assert_array_equal(per_trajectory.sum(1), 40)
    assert len({tuple(row) for row in per_trajectory}) == fitted_q.CRITICS


def test_an_action_is_drawn_for_each_next_state_and_none_is_lost_in_the_last_chunk(part):
    class Seen(Algorithm):
        batch_size: int = hyperparameter(8, "transitions")
        init = update = Constant.init

        def act(self, policy, observation, key, best_of=None):
            return observation[:2]

    policy = Policy(Seen(), (), Standardisation.identity(SPEC))
    index = jnp.arange(3, 3 + 300)
    found = policy_actions(policy, part.dataset, index, jax.random.key(0), 1)
    np.testing.assert_array_equal(found, part.dataset.take(index).next_observation[:, :2])


@settings(max_examples=20, deadline=None)
@given(critics=st.integers(1, 5), count=st.integers(1, 30), seed=st.integers(0, 99))
def test_an_interval_lies_within_the_values_and_is_a_point_where_all_agree(critics, count, seed):
    values = np.random.default_rng(seed).normal(size=(critics, count))
    low, high = bootstrap_interval(values)
    assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9
    assert bootstrap_interval(np.full((critics, count), 2.5)) == pytest.approx((2.5, 2.5))


def test_an_interval_is_wider_where_critics_disagree():
    values = np.random.default_rng(0).normal(size=(1, 200))
    alone, disagreeing = (
        bootstrap_interval(np.repeat(values, 2, 0)),
        bootstrap_interval(np.concatenate([values, values + 5])),
    )
    assert disagreeing[1] - disagreeing[0] > 4 > alone[1] - alone[0]
