"""Fitted-Q evaluation: estimate the value of a given policy from data.

    y_j = r + gamma m Qbar_j(s', a'),  a' ~ policy(s')
    L   = mean_j w_j (Q_j(s, a) - y_j)^2

m is the not-terminal mask. Each critic j has its own target and its own bootstrap weights w_j: how often each
trajectory was drawn with replacement. The spread of the critics thus measures the uncertainty that the data leaves.
The critics start as regressions on the discounted returns of the data, which have the right magnitude; Bellman steps
alone would need thousands of updates to reach it.
Reference: "Batch Policy Learning under Constraints"; the bootstrap is from "Bootstrapping Fitted Q-Evaluation".
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms.parts import Trainable, descend, polyak, trainable
from drol.compiling import fast_jit
from drol.data.dataset import Dataset
from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.data.trajectories import Part, spread
from drol.evaluation.support import draw_actions
from drol.networks.critics import QEnsemble
from drol.policy import Policy
from drol.transition import Metrics

CRITICS = 4
HIDDEN_SIZES = (128, 128)
BATCH_SIZE = 256
LEARNING_RATE = 1e-3
TARGET_RATE = 0.05
START_UPDATES = 2_000  # of the regression on returns
TRANSITIONS = 100_000  # maximum number of transitions; the policy acts once in each
INITIAL_STATES = 1_000  # maximum number
RESAMPLES = 2_000


class FittedQ(eqx.Module):
    """Critics of one policy; the networks map standardised observations to standardised values."""

    critics: QEnsemble
    standardisation: Standardisation
    mean: Array  # of the returns of the data
    deviation: Array  # their standard deviation

    def __call__(self, observation: Array, action: Array) -> Array:
        """Return the values [critics, ...]."""
        return self.mean + self.deviation * self.critics(self.standardisation(observation), action)


class FittedData(eqx.Module):
    """The data on which critics are fitted; it does not depend on the policy."""

    dataset: Dataset
    index: Array  # [M], the transitions that are used
    weight: Array  # w, [critics, M]
    discounted_return: Array  # [M]
    lowest: Array  # lower bound of values
    highest: Array  # upper bound of the value after each transition, [M]
    discount: Array
    start: FittedQ


def prepare(part: Part, discount: float, seed: int = 0, updates: int = START_UPDATES) -> FittedData:
    """Choose transitions, draw the bootstrap weights and fit the critics to the returns of the data."""
    index = part.spread(TRANSITIONS)
    trajectories = part.trajectories
    returns, unseen = trajectories.discounted_returns(discount)
    reward = trajectories.reward[index]
    # After the last transition of a trajectory, assume the mean reward of the data.
    returns = returns[index] + unseen[index] * reward.mean() / (1 - discount)
    count = part.end - part.begin
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), CRITICS)
    bounds = np.asarray([reward.min(), reward.max(), 0]) / (1 - discount)
    spec = part.dataset.spec
    standardisation = Standardisation.identity(spec)
    if len(spec.observation_shape) == 1:  # the encoder of images does its own scaling
        observation = part.dataset.take(jnp.asarray(index)).observation
        standardisation = Standardisation.from_moments(*observation_moments(observation))
    key, start_key = jax.random.split(jax.random.key(seed))
    start = FittedQ(
        QEnsemble(key, spec, HIDDEN_SIZES, CRITICS),
        standardisation,
        jnp.asarray(returns.mean(), jnp.float32),
        jnp.asarray(max(float(returns.std()), 1e-3), jnp.float32),
    )
    data = FittedData(
        dataset=part.dataset,
        index=jnp.asarray(index),
        weight=jnp.asarray(draws[:, trajectories.number[index] - part.begin], jnp.float32),
        discounted_return=jnp.asarray(returns, jnp.float32),
        lowest=jnp.asarray(bounds.min(), jnp.float32),
        highest=jnp.full(len(index), bounds.max(), jnp.float32),
        discount=jnp.asarray(discount, jnp.float32),
        start=start,
    )
    return eqx.tree_at(lambda data: data.start, data, fit_returns(data, start_key, updates))


def fit(data: FittedData, policy: Policy, updates: int, key: Array, best_of: int | None = None) -> FittedQ:
    """Return the critics of a policy after `updates` updates."""
    action_key, fit_key = jax.random.split(key)
    next_action = policy_actions(policy, data.dataset, data.index, action_key, best_of)
    return fit_bellman(data, next_action, fit_key, updates)


@functools.partial(jax.jit, static_argnames="best_of")
def policy_actions(policy: Policy, dataset: Dataset, index: Array, key: Array, best_of: int | None) -> Array:
    """Draw one action [M, action] of the policy at the state after each transition.

    The actions are drawn once and not in every update, because some policies are slow.
    """
    count = len(index)
    chunks = -(-count // BATCH_SIZE)
    index = jnp.resize(index, (chunks, BATCH_SIZE))  # the last chunk is filled with repeated rows
    keys = jax.random.split(key, index.shape)

    def act(chunk: tuple[Array, Array]) -> Array:
        return policy.draw_each(dataset.take(chunk[0]).next_observation, chunk[1], best_of)

    return jax.lax.map(act, (index, keys)).reshape(chunks * BATCH_SIZE, -1)[:count]


def weighted_loss(
    critics: QEnsemble, observation: Array, action: Array, target: Array, weight: Array
) -> tuple[Array, Metrics]:
    """Return `E mean_j w_j (Q_j(s, a) - y_j)^2` for y and w [critics, batch]."""
    return (weight * jnp.square(critics(observation, action) - target)).mean(), {}


@fast_jit()
def fit_returns(data: FittedData, key: Array, updates: Array | int) -> FittedQ:
    """Fit the critics to the returns of the data."""
    start = data.start

    def update(step: Array, critics: Trainable[QEnsemble]) -> Trainable[QEnsemble]:
        chosen = jax.random.randint(jax.random.fold_in(key, step), (BATCH_SIZE,), 0, len(data.index))
        batch = data.dataset.take(data.index[chosen])
        target = (data.discounted_return[chosen] - start.mean) / start.deviation
        observation = start.standardisation(batch.observation)
        arguments = (observation, batch.action, target, data.weight[:, chosen])
        return descend(critics, LEARNING_RATE, weighted_loss, *arguments)[0]

    critics = jax.lax.fori_loop(0, updates, update, trainable(start.critics))
    return eqx.tree_at(lambda fitted: fitted.critics, start, critics.network)


@fast_jit(static_argnames="pessimistic")
def fit_bellman(
    data: FittedData, next_action: Array, key: Array, updates: Array | int, pessimistic: bool = False
) -> FittedQ:
    """Fit the critics to the policy by Bellman steps, starting from the regression on returns.

    In a pessimistic fit, all critics learn from the minimum of the target critics.
    """
    start = data.start

    def update(step: Array, carry: Any) -> Any:
        critics, target_critics = carry
        chosen = jax.random.randint(jax.random.fold_in(key, step), (BATCH_SIZE,), 0, len(data.index))
        batch = data.dataset.take(data.index[chosen])
        target_q = eqx.tree_at(lambda fitted: fitted.critics, start, target_critics)
        next_q = target_q(batch.next_observation, next_action[chosen])
        next_q = jnp.clip(next_q.min(0) if pessimistic else next_q, data.lowest, data.highest[chosen])
        target = batch.reward + data.discount * batch.continues * next_q  # [critics, batch]
        target = (target - start.mean) / start.deviation
        observation = start.standardisation(batch.observation)
        arguments = (observation, batch.action, target, data.weight[:, chosen])
        target_critics = polyak(critics.network, target_critics, TARGET_RATE)
        return descend(critics, LEARNING_RATE, weighted_loss, *arguments)[0], target_critics

    carry = (trainable(start.critics), start.critics)
    critics, _ = jax.lax.fori_loop(0, updates, update, carry)
    return eqx.tree_at(lambda fitted: fitted.critics, start, critics.network)


@functools.partial(jax.jit, static_argnames="best_of")
def policy_values(policy: Policy, critics: Any, observation: Array, key: Array, best_of: int | None) -> Array:
    """Return `V_j(s)` [critics, states]: the mean of Q over actions drawn from the policy."""
    action = draw_actions(policy, observation, key, best_of)  # [draws, states, action]
    return jax.lax.map(lambda each: critics(observation, each), action).mean(0)


@eqx.filter_jit
def data_values(critic: Any, observation: Array, action: Array) -> Array:
    """Return `Q_j(s, a)` [critics, batch] of given actions."""
    return critic(observation, action)


def initial_observations(part: Part) -> Array:
    """Return the first observations of trajectories, at most `INITIAL_STATES`."""
    first = part.trajectories.first[part.begin : part.end]
    return part.dataset.take(jnp.asarray(first[spread(len(first), INITIAL_STATES)])).observation


def bootstrap_interval(values: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean of values [critics, trajectories].

    A critic and the trajectories are resampled together, which `scipy.stats.bootstrap` cannot do.
    """
    generator = np.random.default_rng(seed)
    critics, count = values.shape
    drawn = generator.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count  # [resamples, trajectories]
    means = (drawn * values[generator.integers(0, critics, RESAMPLES)]).sum(-1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
