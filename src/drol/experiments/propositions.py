"""The five propositions of the paper as numbers: a function for each, and a figure of it.

    1  separated_neighbourhoods   the exact minimiser of the routed objective has one prototype for each interval
    2  tether_and_route           gradients of the losses that train: a pull that stays, and one that changes hands
    3  tether_bias                |x_fix - x_Q| <= 2 / (2 + alpha m) |a - x_Q|
    4  coverage                   P(all M neighbourhoods hit by K draws) >= 1 - sum (1 - p_m)^K >= 1 - M exp(-K p_min)
    5  ball_scale                 E|z|^2 = d / (d + 2) R^2 for z uniform in the ball of radius R

docs/propositions.md states them and quotes the numbers; `python -m drol.experiments.propositions --out docs/images`
draws the figures.
"""

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms.drol import DROL
from drol.algorithms.fql import FQL
from drol.types import Transition


def interval_points(centres: np.ndarray, radius: float, count: int) -> np.ndarray:
    """Midpoints of `count` equal pieces of each interval: one interval has the variance `r^2/3 (1 - 1/count^2)`."""
    pieces = radius * (2 * np.arange(count) + 1 - count) / count
    return (centres[:, None] + pieces).ravel()


def exact_kmeans(points: np.ndarray, count: int) -> tuple[float, np.ndarray]:
    """The global minimum of `mean min_k (x_k - a)^2` over points on a line, and its prototypes.

    Cells of an optimum are runs of sorted points, so `best[k, j] = min_i best[k-1, i] + cost of the run i..j`.
    """
    points = np.sort(points)
    total, square = (np.concatenate([[0.0], np.cumsum(points**power)]) for power in (1, 2))
    start, stop = np.meshgrid(np.arange(len(points) + 1), np.arange(len(points) + 1), indexing="ij")
    size = np.where(stop > start, stop - start, 1)
    run_cost = square[stop] - square[start] - (total[stop] - total[start]) ** 2 / size
    run_cost = np.where(stop > start, run_cost, np.inf)  # every prototype serves at least one point
    best, cuts = run_cost[0], []
    for _ in range(count - 1):
        choice = best[:, None] + run_cost
        cuts.append(choice.argmin(0))
        best = choice.min(0)
    ends = [len(points)]
    for cut in reversed(cuts):
        ends.append(int(cut[ends[-1]]))
    ends = [0, *reversed(ends)]
    return best[-1] / len(points), np.asarray([points[i:j].mean() for i, j in itertools.pairwise(ends)])


def lloyd(points: np.ndarray, prototypes: np.ndarray, steps: int = 200) -> tuple[float, np.ndarray]:
    """Where alternating between routing and averaging stops: a local minimum of the same objective."""
    for _ in range(steps):
        winner = np.abs(points[:, None] - prototypes).argmin(1)
        prototypes = np.asarray(
            [points[winner == k].mean() if (winner == k).any() else x for k, x in enumerate(prototypes)]
        )
    return float(np.square(points[:, None] - prototypes).min(1).mean()), prototypes


def separated_neighbourhoods(centres: np.ndarray, radius: float, count: int = 60) -> dict[str, Any]:
    """Proposition 1 for intervals of one radius, with as many prototypes as intervals (and one fewer, and two more)."""
    points = interval_points(centres, radius, count)
    cost, prototypes = exact_kmeans(points, len(centres))
    collapsed_start = np.concatenate([centres[:1] - radius / 2, centres[:-1] + radius / 2])
    collapsed, _ = lloyd(points, collapsed_start)
    ends = np.asarray([-radius, radius]) * (1 + 1e-9)  # just outside an interval around 0
    return {
        "cost": cost,
        "prototypes": prototypes,
        "prototypes_inside": [int((np.abs(prototypes - centre) <= radius).sum()) for centre in centres],
        "one_interval": radius**2 / 3 * (1 - 1 / count**2),
        "one_fewer": exact_kmeans(points, len(centres) - 1)[0],
        "collapsed": collapsed,
        "served_from_outside": np.square(interval_points(np.zeros(1), radius, 10_000)[:, None] - ends).min(1).mean(),
    }


class Table(eqx.Module):
    """An actor without a network: latent k in one-hot form is candidate k, so its gradient is that of a candidate."""

    points: Array  # [K, action]

    def __call__(self, observation: Array, latent: Array) -> Array:  # noqa: ARG002
        return latent @ self.points

    candidates = __call__


def smooth_critic(dimension: int, seed: int) -> Callable[[Array, Array], Array]:
    """Two smooth functions of the action, away from zero, as an ensemble."""
    wave, phase = (np.random.default_rng(seed).normal(size=shape) for shape in ((2, dimension), (2,)))

    def critic(observation: Array, action: Array) -> Array:  # noqa: ARG001
        return 3 + jnp.sin(jnp.einsum("jd,...d->j...", wave, action) + jnp.expand_dims(phase, 1))

    return critic


def one_target(action: np.ndarray) -> Transition:
    """A batch of one data action."""
    zero, row = jnp.zeros(1), jnp.asarray(action, jnp.float32)[None]
    return Transition(jnp.zeros((1, 1)), row, zero, zero, jnp.zeros((1, 1)), row, zero)


def routed_gradient(algorithm: DROL, points: np.ndarray, critic: Any, target: np.ndarray) -> np.ndarray:
    """The gradient [K, action] of DROL's own actor loss with respect to its candidates."""
    actor: Any = Table(jnp.asarray(points, jnp.float32))
    batch = one_target(target)
    winner = algorithm.route(actor, batch, jnp.eye(len(points))[None])
    return np.asarray(jax.grad(lambda actor: algorithm.actor_loss(actor, critic, batch, winner)[0])(actor).points)


def tether_and_route(dimension: int, count: int = 6, alpha: float = 0.7, seed: int = 0) -> dict[str, Any]:
    """Proposition 2 by automatic differentiation of the losses of FQL and DROL, printed and released form.

    The last candidate starts outside the box, because there the released form has no gradient.
    """
    generator = np.random.default_rng(seed)
    critic = smooth_critic(dimension, seed)
    target = generator.uniform(-0.5, 0.5, dimension)
    points = generator.uniform(-0.9, 0.9, (count, dimension))
    points[-1] = target + 0.02
    points[-1, 0] = 1.2

    def slope(x: np.ndarray, how: Callable[[Array], Array]) -> np.ndarray:
        return np.asarray(jax.grad(lambda x: how(critic(jnp.zeros(1), x[None]))[0])(jnp.asarray(x, jnp.float32)))

    def smallest(q: Array) -> Array:
        return q.min(0)

    printed, released = DROL(objective="equation", alpha=alpha), DROL(bc_weight=alpha)
    tether = jax.grad(
        lambda x: FQL(alpha=alpha).actor_loss(  # pyright: ignore[reportArgumentType]
            Table(x[None]), critic, one_target(target), jnp.ones((1, 1)), jnp.asarray(target, jnp.float32)
        )[0]
    )(jnp.asarray(points[0], jnp.float32))
    tether_form = alpha * 2 * (points[0] - target) / dimension - slope(points[0], lambda q: q.mean(0))

    # The printed form sees the candidate outside the box where it is; the released form routes what it clips to.
    winner = int(np.square(points - target).sum(1).argmin())
    gradient = routed_gradient(printed, points, critic, target)
    form = 2 * (points[winner] - target) - alpha * slope(points[winner], smallest)
    clipped = np.clip(points, -1, 1)
    code_winner = int(np.square(clipped - target).sum(1).argmin())
    code_gradient = routed_gradient(released, points, critic, target)
    q = float(critic(jnp.zeros(1), jnp.asarray(clipped[code_winner])[None]).min())
    code_form = alpha * 2 * (clipped[code_winner] - target) / dimension - slope(clipped[code_winner], smallest) / q
    code_form = np.where(np.abs(points[code_winner]) <= 1, code_form, 0.0)

    moved = points.copy()  # the winner follows Q until its rivals are nearer to the target
    moved[winner] = target + (points[winner] - target) * 100
    after = routed_gradient(printed, moved, critic, target)
    return {
        "tether_error": np.abs(np.asarray(tether) - tether_form).max(),
        "winner_error": np.abs(gradient[winner] - form).max(),
        "code_winner_error": np.abs(code_gradient[code_winner] - code_form).max(),
        "largest_loser_gradient": max(
            np.abs(np.delete(gradient, winner, 0)).max(), np.abs(np.delete(code_gradient, code_winner, 0)).max()
        ),
        "winner": winner,
        "rows_before": np.flatnonzero(np.abs(gradient).max(1)).tolist(),
        "rows_after": np.flatnonzero(np.abs(after).max(1)).tolist(),
        "runner_up": int(np.square(moved - target).sum(1).argmin()),
    }
