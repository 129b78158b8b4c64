"""The cheap part of offline evaluation: the error against held-out actions, and the distance to the data's support.

    d(s, a) = min over the k training states n nearest to s of |a - a_n| / sqrt(d_a)

For a policy that copies the data, d of its actions is distributed like d of the actions in the held-out data.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial import KDTree

from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.data.trajectories import Part
from drol.evaluation.held_out import split
from drol.policy import Policy
from drol.tasks.base import Task

STATES = 512  # number of held-out states
NEIGHBOURS = 32  # k
DRAWS = 16  # actions of the policy for each state; the same for all methods and all K, so that they are comparable
REFERENCE = 100_000  # maximum number of training states in the neighbour search
REFERENCE_BYTES = 2**28  # maximum size of these states, so that images fit into memory
TREE = 8  # maximum dimension of states for which a k-d tree is faster than brute force
OUTSIDE = 0.95  # an action is outside the support if its d is above this quantile of d of the held-out actions
DATA_SHARE = 1 - OUTSIDE  # share of held-out actions that are outside by this definition
LEAVES = 5.0  # a policy leaves the support if its share outside is above this multiple of `DATA_SHARE`


class Precision(NamedTuple):
    """Distances d to the data, of random draws of a policy and of the held-out actions.

    Attributes:
        draw: Mean d of one random draw, without a choice by the critic.
        draw_worst: The 95th percentile of d over draws and states; a critic may choose the worst draw.
        data: Mean d of the held-out actions.
        data_worst: Their 95th percentile.
        outside: Share of draws whose d is above `data_worst`.
    """

    draw: float
    draw_worst: float
    data: float
    data_worst: float
    outside: float

    @property
    def ratio(self) -> float:
        """Mean d of a draw divided by mean d of the data; 1 for a policy that copies the data."""
        return self.draw / max(self.data, 1e-6)


class HeldOut(eqx.Module):
    """Held-out states with their actions, and the actions of the nearest training states."""

    observation: Array  # [states, *observation], not standardised
    action: Array  # [states, action]
    neighbour_action: Array  # [states, k, action]
    trajectory: Array | None = None  # [states], the number of the trajectory of each state

    @property
    def data_distance(self) -> Array:
        """d of the held-out actions, [states]."""
        return action_distance(self.action, self.neighbour_action)


def hold_out(task: Task) -> HeldOut:
    """Return the held-out states of a task with their neighbours; they depend only on the data."""
    reference, held_out, _ = split(task)
    return find_neighbours(reference, held_out)


def find_neighbours(reference: Part, held_out: Part) -> HeldOut:
    chosen = held_out.spread(STATES)
    tested = held_out.dataset.take(jnp.asarray(chosen))
    row_bytes = 4 * reference.dataset.spec.observation_size
    known = reference.dataset.take(jnp.asarray(reference.spread(max(1, min(REFERENCE, REFERENCE_BYTES // row_bytes)))))
    points = jnp.asarray(known.observation, jnp.float32)
    # Pixels are standardised too, because they are only compared here and no network sees them.
    standardise = Standardisation.from_moments(*observation_moments(points))
    index = nearest(np.asarray(standardise(points)), np.asarray(standardise(tested.observation)), NEIGHBOURS)
    trajectory = jnp.asarray(held_out.trajectories.number[chosen])
    return HeldOut(tested.observation, tested.action, known.action[index], trajectory)


def nearest(points: np.ndarray, queries: np.ndarray, count: int) -> np.ndarray:
    """Return the indices [queries, count] of the points nearest to each query; all points if there are fewer."""
    points = points.reshape(len(points), -1).astype(np.float64)  # differences of large squares need the precision
    queries = queries.reshape(len(queries), -1).astype(np.float64)
    count = min(count, len(points))
    if points.shape[1] <= TREE:
        return np.asarray(KDTree(points).query(queries, count)[1]).reshape(len(queries), count)
    squares = np.square(points).sum(-1)
    found = []
    for chunk in np.array_split(queries, -(-len(queries) // 64)):
        distance = squares - 2 * chunk @ points.T  # [chunk, points], without |query|^2, which does not change the order
        found.append(np.argpartition(distance, count - 1, axis=-1)[:, :count].copy())  # a view would keep all indices
    return np.concatenate(found)


def action_distance(action: Array, neighbour_action: Array) -> Array:
    """Return d [...] of actions [..., action], given the actions of the neighbours [..., k, action]."""
    return jnp.sqrt(jnp.square(action[..., None, :] - neighbour_action).mean(-1).min(-1))


def offline_scores(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None = None) -> dict[str, float]:
    """Return the metrics of a policy on held-out data; docs/offline-evaluation.md explains each metric."""
    return {name: float(value) for name, value in measure(policy, held_out, key, best_of).items()}


def leaves_support(outside: float | None) -> bool:
    """Return whether a policy with this share of actions outside the support leaves the support of the data."""
    return outside is not None and outside > LEAVES * DATA_SHARE


def support_warning(outside: float | None, policy: str = "this policy") -> str | None:
    """Return a warning with advice if a policy leaves the support of the data; None if it does not.

    Args:
        outside: The share of its actions outside the support; None if it was not measured.
        policy: The name of the policy in the warning.
    """
    if not leaves_support(outside):
        return None
    return (
        f"{outside:.0%} of the actions of {policy} lie outside the data, against {DATA_SHARE:.0%} of the data's own, "
        "so it may fail badly: do not run it on a machine; train again with the default method of `drol train`, with "
        "--algorithm iql, or with a larger weight of cloning"
    )


def draw_precision(policy: Policy, held_out: HeldOut, key: Array) -> Precision:
    """Return the distances of random draws of a policy to the data: the precision of a generator, not its coverage.

    Args:
        policy: A policy. If its critic chooses among draws, the draws are measured before the choice.
        held_out: Held-out states and the actions near them, from `hold_out`.
        key: The key of the draws.
    """
    return Precision(*(float(value) for value in measure_draws(policy, held_out, key)))


@jax.jit
def measure_draws(policy: Policy, held_out: HeldOut, key: Array) -> tuple[Array, ...]:
    distance = action_distance(draw_actions(policy, held_out.observation, key, 1), held_out.neighbour_action)
    data = held_out.data_distance
    limit = jnp.quantile(data, OUTSIDE)
    return distance.mean(), jnp.quantile(distance, OUTSIDE), data.mean(), limit, (distance > limit).mean()


@functools.partial(jax.jit, static_argnames="best_of")
def measure(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None) -> dict[str, Array]:
    squared_error, distance = errors_and_distances(policy, held_out, key, best_of)
    data_distance = held_out.data_distance
    limit = jnp.quantile(data_distance, OUTSIDE)
    return {
        "routed_bc_loss": squared_error.min(0).mean(),
        "single_sample_error": squared_error.mean(),
        "support_distance": distance.mean(),
        "support_ratio": distance.mean() / jnp.maximum(data_distance.mean(), 1e-6),
        "outside_support": (distance > limit).mean(),
    }


@functools.partial(jax.jit, static_argnames="best_of")
def measure_states(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None = None) -> tuple[Array, Array]:
    """Return the squared error and the share of draws outside the support, [states] each.

    Their means over states are in the result of `measure`.
    """
    squared_error, distance = errors_and_distances(policy, held_out, key, best_of)
    limit = jnp.quantile(held_out.data_distance, OUTSIDE)
    return squared_error.mean(0), (distance > limit).astype(jnp.float32).mean(0)


def errors_and_distances(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None) -> tuple[Array, Array]:
    """Return the squared error against the held-out action, and d, of each draw, [draws, states] each."""
    action = draw_actions(policy, held_out.observation, key, best_of)  # [draws, states, action]
    return jnp.square(action - held_out.action).mean(-1), action_distance(action, held_out.neighbour_action)


def draw_actions(policy: Policy, observation: Array, key: Array, best_of: int | None) -> Array:
    """Draw actions [draws, states, action]; only one draw for a deterministic policy."""

    def draw(key: Array) -> Array:
        return policy.draw_each(observation, jax.random.split(key, len(observation)), best_of)

    return jax.lax.map(draw, jax.random.split(key, DRAWS if policy.algorithm.draws_actions else 1))
