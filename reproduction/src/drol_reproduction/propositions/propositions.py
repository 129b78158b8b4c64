"""The propositions of the paper as numbers, a function for each; the fourth is in coverage.py.

    1  separated_neighbourhoods   the exact minimiser of the routed objective has one prototype for each interval
    2  tether_and_route           gradients of the training losses: a pull that stays, and a pull that changes its owner
    3  tether_bias                |x_fix - x_Q| <= 2 / (2 + alpha m) |a - x_Q|, where every x is allowed
       bounded_tether_bias        the same where x must be in a box
    5  ball_scale                 E|z|^2 = d / (d + 2) R^2 for z uniform in the ball of radius R

docs/propositions.md states them and shows the numbers, which `drol paper propositions` computes.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.stats import kstest

from drol.algorithms.drol import DROL
from drol.algorithms.drol_equation import DROLEquation
from drol.algorithms.fql import FQL
from drol.algorithms.parts import aggregate, uniform_in_ball
from drol.transition import Transition


def interval_points(centres: np.ndarray, radius: float, count: int) -> np.ndarray:
    """Return midpoints of `count` equal pieces of each interval, whose variance is `r^2/3 (1 - 1/count^2)`."""
    pieces = radius * (2 * np.arange(count) + 1 - count) / count
    return (centres[:, None] + pieces).ravel()


def separated_centres(count: int, radius: float, seed: int, least_gap: float = 4.0) -> np.ndarray:
    """Return random centres more than `least_gap` radii apart, some of them only slightly more."""
    extra = np.random.default_rng(seed).exponential(2, count) * (np.arange(count) % 2)
    return np.cumsum(radius * (least_gap + 0.01 + extra))


def exact_kmeans(points: np.ndarray, count: int) -> tuple[float, np.ndarray]:
    """Return the global minimum of `mean min_k (x_k - a)^2` over points on a line, and its prototypes.

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
    return float(best[-1]) / len(points), np.asarray([points[i:j].mean() for i, j in itertools.pairwise(ends)])


def lloyd(points: np.ndarray, prototypes: np.ndarray, steps: int = 200) -> tuple[float, np.ndarray]:
    """Alternate between routing and averaging until convergence at a local minimum of the same objective."""
    for _ in range(steps):
        winner = np.abs(points[:, None] - prototypes).argmin(1)
        prototypes = np.asarray(
            [points[winner == k].mean() if (winner == k).any() else x for k, x in enumerate(prototypes)]
        )
    return float(np.square(points[:, None] - prototypes).min(1).mean()), prototypes


def separated_neighbourhoods(centres: np.ndarray, radius: float, count: int = 60) -> dict[str, Any]:
    """Check proposition 1: `J(x) = E min_k (x_k - a)^2` for a uniform on intervals, at its exact minimum for K = M.

    Also return the numbers behind the printed proof and our proof: the minimum with one prototype fewer, the local
    minimum of Lloyd's iteration from a collapsed start, and an interval with two prototypes just outside its ends.
    """
    points = interval_points(centres, radius, count)
    cost, prototypes = exact_kmeans(points, len(centres))
    collapsed_start = np.concatenate([centres[:1] - radius / 2, centres[:1] + radius / 2, centres[1:-1]])
    ends = np.asarray([-radius, radius]) * (1 + 1e-9)
    return {
        "cost": cost,
        "prototypes": prototypes,
        "prototypes_inside": [int((np.abs(prototypes - centre) <= radius).sum()) for centre in centres],
        "one_interval": radius**2 / 3 * (1 - 1 / count**2),
        "one_fewer": exact_kmeans(points, len(centres) - 1)[0],
        "collapsed": lloyd(points, collapsed_start)[0],
        "served_from_outside": np.square(interval_points(np.zeros(1), radius, 10_000)[:, None] - ends).min(1).mean(),
    }


class Table(eqx.Module):
    """An actor without a network: the one-hot latent k gives candidate k, so gradients are per candidate."""

    points: Array  # [K, action]

    def __call__(self, observation: Array, latent: Array) -> Array:  # noqa: ARG002
        return latent @ self.points

    def candidates(self, observation: Array, latent: Array) -> Array:
        return self(observation, latent)


def smooth_critic(dimension: int, seed: int) -> Callable[..., Array]:
    """Return two smooth functions of the action, away from zero, as an ensemble."""
    generator = np.random.default_rng(seed)
    wave, phase = jnp.asarray(generator.normal(size=(2, dimension))), jnp.asarray(generator.normal(size=(2, 1)))

    def critic(observation: Array, action: Array) -> Array:  # noqa: ARG001
        return 3 + jnp.sin(wave @ action.T + phase)  # [ensemble, batch]

    return critic


def batch_of(actions: np.ndarray) -> Transition:
    """Return a batch of data actions [batch, action] at one state."""
    rows, zero = jnp.asarray(actions, jnp.float32), jnp.zeros(len(actions))
    return Transition(zero[:, None], rows, zero, zero, zero[:, None], rows, zero)


def routed_gradient(algorithm: DROL | DROLEquation, points: Array | np.ndarray, critic: Any, data: np.ndarray) -> Array:
    """Return the gradient [K, action] of DROL's own actor loss, over data actions, with respect to its candidates."""
    actor: Any = Table(jnp.asarray(points, jnp.float32))
    batch = batch_of(data)
    winner = algorithm.route(actor, batch, jnp.tile(jnp.eye(len(points)), (len(data), 1, 1)))
    return jax.grad(lambda actor: algorithm.actor_loss(actor, critic, batch, winner)[0])(actor).points


def tether_gradient(alpha: float, points: Array | np.ndarray, critic: Any, teachers: np.ndarray) -> Array:
    """Return the gradient [sample, action] of FQL's own actor loss with respect to samples, each with a teacher."""
    actor: Any = Table(jnp.asarray(points, jnp.float32))
    arguments = critic, batch_of(teachers), jnp.eye(len(points)), jnp.asarray(teachers, jnp.float32)
    return jax.grad(lambda actor: FQL(alpha=alpha).actor_loss(actor, *arguments)[0])(actor).points


def tether_and_route(objective: str, dimension: int, weight: float = 0.7, seed: int = 0) -> dict[str, Any]:
    """Check proposition 2 by automatic differentiation of the training actor losses, for one target a.

    Tether `alpha 2(x - a)/d_a - dQ(x)`; routed, for the winner alone, `2(x - a) - alpha dQ(x)` as printed (objective
    "equation", `DROLEquation`) and `bc_weight 2(x - a)/d_a - dQ(x)/|Q(x)|` as released.
    """
    generator = np.random.default_rng(seed)
    critic = smooth_critic(dimension, seed)
    points = generator.uniform(-0.5, 0.5, (6, dimension))
    target = generator.uniform(-0.2, 0.2, dimension)
    winner, runner_up = np.square(points - target).sum(1).argsort()[:2].tolist()
    moved = points.copy()
    moved[winner] = target + 1.1 * (points[runner_up] - target)  # past the bisector: the second is now nearest
    outside = points.copy()
    outside[:, 0] = 1.2

    def q_and_slope(x: np.ndarray, how: str) -> tuple[Array, Array]:
        return jax.value_and_grad(lambda x: aggregate(critic(x, x[None]), how)[0])(jnp.asarray(x, jnp.float32))

    def tether_error(x: np.ndarray) -> float:
        formula = weight * 2 * (x - target) / dimension - q_and_slope(x, "mean")[1]
        return float(np.abs(tether_gradient(weight, x[None], critic, target[None])[0] - formula).max())

    q, slope = q_and_slope(points[winner], "min")
    pull = 2 * (points[winner] - target)
    if objective == "equation":
        algorithm, formula = DROLEquation(alpha=weight), pull - weight * slope
    else:
        algorithm, formula = DROL(bc_weight=weight), weight * pull / dimension - slope / abs(q)
    before, after = (np.asarray(routed_gradient(algorithm, each, critic, target[None])) for each in (points, moved))
    return {
        "winner_error": float(np.abs(before[winner] - formula).max()),
        "largest_loser_gradient": float(np.abs(np.delete(before, winner, 0)).max()),
        "winner": winner,
        "runner_up": runner_up,
        "pulled_before": np.flatnonzero(np.abs(before).max(1)).tolist(),
        "pulled_after": np.flatnonzero(np.abs(after).max(1)).tolist(),
        "tether_error": max(tether_error(points[winner]), tether_error(moved[winner])),
        "gradient_outside_the_box": float(
            np.abs(routed_gradient(algorithm, outside, critic, target[None])[:, 0]).max()
        ),
    }


def uniform_disc(count: int, seed: int) -> np.ndarray:
    """Return points [count, 2] uniform in the unit disc."""
    angle, square = np.random.default_rng(seed).uniform(size=(2, count)) * [[2 * np.pi], [1.0]]
    return np.sqrt(square)[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)


def follow_q(
    strength: float, optimum: np.ndarray, data: np.ndarray, start: np.ndarray, centres: np.ndarray | None = None
) -> dict[str, Any]:
    """Return the fixed points of three losses for free points and `Q(x) = -m/2 |x - x_Q|^2`; strength is alpha m.

    tethered: each point has its own start as teacher a_i, so `x_i = (2 a_i + alpha m x_Q) / (2 + alpha m)`.
    frozen:   the same with the centres of k-means as teachers: routing with owners fixed before Q acts. Without Q
              it is at the same places as routed.
    routed:   the same equation, where a_i is the mean of the data that a candidate wins; found by repeated routing and
              solving.

    The centres are computed if they are not given.
    """
    centres = routed_rest(0.0, optimum, data, start) if centres is None else centres
    points = {
        "tethered": (2 * start + strength * optimum) / (2 + strength),
        "frozen": (2 * centres + strength * optimum) / (2 + strength),
        "routed": routed_rest(strength, optimum, data, start),
    }
    result: dict[str, Any] = dict(points)
    for name, each in points.items():
        result[f"{name}_distance"] = float(np.linalg.norm(each - optimum, axis=1).mean())
        result[f"{name}_gap"] = float(np.linalg.norm(data[:, None] - each, axis=-1).min(1).mean())
    return result


def routed_rest(strength: float, optimum: np.ndarray, data: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the fixed points of the routed loss; without Q these are centres of k-means."""
    routed, numbers = start.copy(), np.arange(len(start))
    for _ in range(500):
        won = np.square(data[:, None] - routed).sum(-1).argmin(1)[:, None] == numbers  # [data, point]
        count = won.sum(0)[:, None]
        mean = won.T @ data / np.maximum(count, 1)
        rest = np.where(count > 0, (2 * mean + strength * optimum) / (2 + strength), routed)
        before, routed = routed, 0.5 * routed + 0.5 * rest  # full steps can alternate forever
        if np.abs(routed - before).max() < 1e-12:
            break
    return routed


def distance_at_gap(gap: float, rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the distance to the optimum at the largest strength of Q at which the mean gap to the data is `gap`.

    The value is interpolated between two strengths. It is NaN if the strengths do not bracket the gap.

    Args:
        gap: Mean distance from data to the nearest point.
        rows: The return values of `follow_q` for strengths in increasing order.
        name: "tethered", "frozen" or "routed".
    """
    gaps, distances = (np.asarray([row[f"{name}_{what}"] for row in rows]) for what in ("gap", "distance"))
    below = np.flatnonzero(gaps <= gap)
    if not len(below) or below[-1] == len(gaps) - 1:
        return math.nan
    last = below[-1]
    share = (gap - gaps[last]) / (gaps[last + 1] - gaps[last])
    return float(distances[last] + share * (distances[last + 1] - distances[last]))


class TetherProblem:
    """`g(x) = |x - a|^2 - alpha Q(x)` for a random target a and a random Q with its maximum at 0 and curvature m >= 1.

    `-Q = m/2 |x|^2` (isotropic), `x' A x / 2` (anisotropic) or that plus `2 sum log cosh x` (curved).
    """

    def __init__(self, alpha: float, dimension: int, kind: str, generator: np.random.Generator):
        self.alpha, self.bound = alpha, 2 / (2 + alpha)
        self.target = generator.normal(size=dimension)
        basis = np.linalg.qr(generator.normal(size=(dimension, dimension)))[0]
        curvature = np.ones(dimension) if kind == "isotropic" else np.linspace(1, 10, dimension)
        self.matrix = basis @ np.diag(curvature) @ basis.T
        self.bend = 2.0 if kind == "curved" else 0.0

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return 2 * (x - self.target) + self.alpha * (self.matrix @ x + self.bend * np.tanh(x))

    def hessian(self, x: np.ndarray) -> np.ndarray:
        return 2 * np.eye(len(x)) + self.alpha * (self.matrix + np.diag(self.bend / np.cosh(x) ** 2))

    def share(self, x: np.ndarray) -> float:
        """Return the distance from x to x_Q = 0, divided by the distance from the target to x_Q."""
        return float(np.linalg.norm(x) / np.linalg.norm(self.target))


def tether_bias(alpha: float, dimension: int, kind: str, seed: int = 0) -> dict[str, float]:
    """Check proposition 3 where every x is allowed: the remaining share of the way from a to x_Q, and its bound."""
    problem = TetherProblem(alpha, dimension, kind, np.random.default_rng(seed))
    x = problem.target.copy()
    for _ in range(60):  # Newton's method, damped
        x = x - 0.7 * np.linalg.solve(problem.hessian(x), problem.gradient(x))
    optimum = np.zeros(dimension)
    return {
        "share": problem.share(x),
        "bound": problem.bound,
        "slope_at_optimum": float(np.linalg.norm(problem.gradient(optimum))),
        "slope_if_target_is_optimum": float(np.linalg.norm(problem.gradient(optimum) + 2 * problem.target)),
    }


def projected_minimum(problem: TetherProblem, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the minimiser of g in a box that contains 0, by projected gradient descent."""
    x, rate = np.zeros_like(lower), 1 / np.linalg.eigvalsh(problem.hessian(np.zeros(len(lower))))[-1]
    for _ in range(400):
        x = np.clip(x - rate * problem.gradient(x), lower, upper)
    return x


def bounded_tether_bias(alpha: float, dimension: int, kind: str, seed: int = 0) -> dict[str, float]:
    """Check proposition 3 in a random box that contains x_Q and a, thin in some directions.

    If the minimiser is on the edge, the gradient is not 0 there. The bound only needs that no step into the box
    descends, so that `rise_to_optimum`, the gradient times x_Q - x_fix, is not negative.
    """
    generator = np.random.default_rng(seed)
    problem = TetherProblem(alpha, dimension, kind, generator)
    lower, upper = 10 ** generator.uniform(-2.5, 0, (2, dimension)) * [[-1.0], [1.0]]
    problem.target = generator.uniform(lower, upper)
    x = projected_minimum(problem, lower, upper)
    gradient = problem.gradient(x)
    return {
        "share": problem.share(x),
        "bound": problem.bound,
        "slope_at_minimum": float(np.linalg.norm(gradient)),
        "rise_to_optimum": float(-gradient @ x),
        "still_moving": float(np.linalg.norm(np.clip(x - 0.01 * gradient, lower, upper) - x)),
    }


def ball_scale(dimension: int, draws: int = 400_000, seed: int = 0) -> dict[str, float]:
    """Check proposition 5 for DROL's latents, `R = sqrt(d)`: `E|z|^2 = d^2 / (d + 2)`, `(|z|/R)^d` uniform."""
    radius = math.sqrt(dimension)
    latent = np.asarray(uniform_in_ball(jax.random.key(seed), (draws, dimension), radius), np.float64)
    length = np.linalg.norm(latent, axis=1)
    uniform = (length / radius) ** dimension
    return {
        "mean_square": float(np.square(length).mean()),
        "expected": dimension**2 / (dimension + 2),
        "largest": float(length.max() / radius),
        "kolmogorov_smirnov": float(kstest(uniform, "uniform").statistic),
        "mean_direction": float(np.linalg.norm((latent / length[:, None]).mean(0))),
    }
