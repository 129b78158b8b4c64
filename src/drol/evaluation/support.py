"""The cheap half of offline evaluation: how well a policy clones held-out actions, and whether it stays in the data.

    d(s, a) = min over the k training states n nearest to s of |a - a_n| / sqrt(d_a)

For a policy that only copied the data, d of its actions would be d of the actions that were taken at held-out states.
"""

import functools

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

STATES = 512  # held-out states that are looked at
NEIGHBOURS = 32  # k
DRAWS = 16  # actions of the policy for each state: the same for each method and each K, so that they compare
REFERENCE = 100_000  # training states among which neighbours are searched
REFERENCE_BYTES = 2**28  # and their size, so that images fit
TREE = 8  # dimensions of states up to which a tree finds neighbours faster than looking at all
OUTSIDE = 0.95  # an action is outside the support if d is above this quantile of the held-out data's


class HeldOut(eqx.Module):
    """Held-out states, what was done there, and what the training data did near them."""

    observation: Array  # [states, *observation], as the environment gives it
    action: Array  # [states, action]
    neighbour_action: Array  # [states, k, action]

    @property
    def data_distance(self) -> Array:
        """d of the actions that were taken, [states]."""
        return action_distance(self.action, self.neighbour_action)


def hold_out(task: Task) -> HeldOut:
    """Return the held-out states of a task with their neighbours; they depend on the data alone."""
    reference, held_out, _ = split(task)
    return find_neighbours(reference, held_out)


def find_neighbours(reference: Part, held_out: Part) -> HeldOut:
    tested = held_out.dataset.take(jnp.asarray(held_out.spread(STATES)))
    row_bytes = 4 * reference.dataset.spec.observation_size
    known = reference.dataset.take(jnp.asarray(reference.spread(max(1, min(REFERENCE, REFERENCE_BYTES // row_bytes)))))
    points = jnp.asarray(known.observation, jnp.float32)
    # Pixels too: states are compared here, no network sees them.
    standardise = Standardisation.from_moments(*observation_moments(points))
    index = nearest(np.asarray(standardise(points)), np.asarray(standardise(tested.observation)), NEIGHBOURS)
    return HeldOut(tested.observation, tested.action, known.action[index])


def nearest(points: np.ndarray, queries: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers [queries, count] of the points nearest to each query, all of them if they are fewer."""
    points = points.reshape(len(points), -1).astype(np.float64)  # differences of large squares need the digits
    queries = queries.reshape(len(queries), -1).astype(np.float64)
    count = min(count, len(points))
    if points.shape[1] <= TREE:
        return np.asarray(KDTree(points).query(queries, count)[1]).reshape(len(queries), count)
    squares = np.square(points).sum(-1)
    found = []
    for chunk in np.array_split(queries, -(-len(queries) // 64)):
        distance = squares - 2 * chunk @ points.T  # [chunk, points], without |query|^2, which is the same for all
        found.append(np.argpartition(distance, count - 1, axis=-1)[:, :count].copy())  # a view would keep the rest
    return np.concatenate(found)


def action_distance(action: Array, neighbour_action: Array) -> Array:
    """Return d [...] of actions [..., action], given the actions of the neighbours [..., k, action]."""
    return jnp.sqrt(jnp.square(action[..., None, :] - neighbour_action).mean(-1).min(-1))


def offline_scores(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None = None) -> dict[str, float]:
    """Return what held-out data says of a policy, in a second; docs/offline-evaluation.md explains each figure."""
    return {name: float(value) for name, value in measure(policy, held_out, key, best_of).items()}


@functools.partial(jax.jit, static_argnames="best_of")
def measure(policy: Policy, held_out: HeldOut, key: Array, best_of: int | None) -> dict[str, Array]:
    action = draw_actions(policy, held_out.observation, key, best_of)  # [draws, states, action]
    squared_error = jnp.square(action - held_out.action).mean(-1)  # [draws, states]
    distance = action_distance(action, held_out.neighbour_action)  # [draws, states]
    data_distance = held_out.data_distance
    limit = jnp.quantile(data_distance, OUTSIDE)
    return {
        "routed_bc_loss": squared_error.min(0).mean(),
        "single_sample_error": squared_error.mean(),
        "support_distance": distance.mean(),
        "support_ratio": distance.mean() / jnp.maximum(data_distance.mean(), 1e-6),
        "outside_support": (distance > limit).mean(),
    }


def draw_actions(policy: Policy, observation: Array, key: Array, best_of: int | None) -> Array:
    """Draw actions [draws, states, action]; one draw is enough where all would be the same."""

    def draw(key: Array) -> Array:
        return policy.draw_each(observation, jax.random.split(key, len(observation)), best_of)

    return jax.lax.map(draw, jax.random.split(key, DRAWS if policy.algorithm.draws_actions else 1))
