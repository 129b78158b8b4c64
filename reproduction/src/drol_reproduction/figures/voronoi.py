"""Figure 2: the cells of a trained run's candidates at one state, in the three regimes that the paper describes.

Spread: the candidates have spread over the actions. Handoff: the winner moves along Q and another candidate becomes the
nearest to the data action. Stable: the winner moves and stays the nearest. A search finds the state and the
checkpoints. If actions have two dimensions, the figure shows all actions. Otherwise it shows the plane through the data
action that contains the winner's step and the orthogonal direction in which the candidates vary most; the cells are cut
by this plane, and the candidates are projected orthogonally onto it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drol.algorithms import algorithm_name
from drol.algorithms.parts import clip
from drol.algorithms.routing import draw_latents
from drol.data.trajectories import spread
from drol.errors import InputError
from drol.policy import Policy
from drol.reports.figure_style import INK, MISSED, MUTED, REACHED, SERIES, figure_style, styled
from drol.runs.run import Run

SEARCHED = 1024  # number of states to search
PIXELS = 160
FRAMES_A_SECOND = 2
ROUTING = ("drol", "drol-equation", "drol-control")
Q_STEP = 0.1  # a winner's step along Q, divided by the root of the action size; larger than an update's, to be visible


class Routed(NamedTuple):
    """States with their candidates and winners."""

    candidates: Array  # [state, K, action]
    winner: Array  # [state], index of the candidate nearest to the data action
    moved: Array  # [state, action], the winner after one step along Q
    winner_after: Array  # [state], index of the nearest candidate after the winner's step


@eqx.filter_jit
def route(policy: Policy, observation: Array, action: Array, latent: Array) -> Routed:
    """Route data actions to candidates, move each winner one step along Q, and route again."""
    state = jax.vmap(policy.standardisation)(observation)
    candidates = clip(policy.networks.actor.candidates(state, latent))
    index = jnp.arange(len(action))
    winner = nearest(candidates, action)
    before = candidates[index, winner]

    def value(actions: Array) -> Array:
        return policy.networks.critic(state, actions).min(0)

    gradient = jax.grad(lambda actions: value(actions).sum())(before)
    length = Q_STEP * action.shape[-1] ** 0.5
    moved = clip(before + length * gradient / (jnp.linalg.norm(gradient, axis=-1, keepdims=True) + 1e-9))
    after = nearest(candidates.at[index, winner].set(moved), action)
    return Routed(candidates, winner, moved, after)


def nearest(candidates: Array, action: Array) -> Array:
    """Return the index of the candidate that is nearest to each action."""
    return jnp.square(candidates - action[:, None]).sum(-1).argmin(-1)


class Followed(NamedTuple):
    """States, data actions and latents that stay the same over the checkpoints of a run."""

    observation: Array
    action: Array
    latent: Array  # [state, K, action]


def follow(run: Run, states: int) -> Followed:
    """Choose states of the data and K latents for each."""
    algorithm: Any = run.config.algorithm
    name = algorithm_name(algorithm)
    if name not in ROUTING:
        raise InputError(
            f"{run.path}: figure 2 draws the cells of a method that routes; {name} is not one of {', '.join(ROUTING)}"
        )
    data = run.task.train
    batch = data.take(jnp.asarray(spread(data.size, states)))
    shape = len(batch.action), algorithm.num_candidates, data.spec.action_size
    return Followed(batch.observation, batch.action, draw_latents(jax.random.key(0), shape))


@dataclass(frozen=True)
class Scene:
    """One state at one checkpoint: candidates, the data action, the winner before and after a step along Q."""

    regime: str  # "spread", "handoff" or "stable"
    step: int
    state: np.ndarray
    action: np.ndarray
    candidates: np.ndarray  # [K, action]
    winner: int
    moved: np.ndarray
    winner_after: int
    policy: Policy


@dataclass(frozen=True)
class Search:
    """The outcome of the search: the scenes of the figure, and the share of handoffs at each checkpoint."""

    scenes: tuple[Scene, ...]
    handoff_share: dict[int, float]  # share of handoffs, by step
    number: int  # number of the state among the searched states
    seed: int


def find_regimes(run: Run, seed: int | None = None) -> Search:
    """Search states and checkpoints of a run for one state that shows all three regimes, in the order of training."""
    seed = run.config.seeds[0] if seed is None else seed
    steps = [step for step in run.steps if step > 0]
    if len(steps) < 3:
        raise InputError(
            f"the run in {run.path} has {len(steps)} policies after step 0 and figure 2 needs three; train with a "
            "smaller --evaluation-interval"
        )
    followed = follow(run, SEARCHED)
    if followed.latent.shape[1] < 3:
        raise InputError(f"the run in {run.path} has K = {followed.latent.shape[1]}; figure 2 needs 3 or more")
    routed = [route_saved(run, step, seed, followed) for step in steps]
    spreads = np.stack([each["spread"] for each in routed])  # [step, state]
    clarity = np.stack([each["clarity"] for each in routed])
    handoff = np.stack([each["handoff"] for each in routed])
    best, chosen = -np.inf, (0, 0, 1, 2)
    for number in range(SEARCHED):
        for middle in range(1, len(steps) - 1):
            if not handoff[middle, number]:
                continue
            stable = [last for last in range(middle + 1, len(steps)) if not handoff[last, number]]
            for last in stable:
                score = spreads[0, number] + clarity[middle, number] + 0.5 * clarity[last, number]
                score += 0.5 * min(spreads[middle, number], spreads[last, number])
                if score > best:
                    best, chosen = score, (number, 0, middle, last)
    if best == -np.inf:
        raise InputError(f"no state of the run in {run.path} passes from a handoff to a stable winner; train it longer")
    number, *indices = chosen
    scenes = [
        make_scene(run, regime, steps[index], seed, followed, number)
        for regime, index in zip(("spread", "handoff", "stable"), indices, strict=True)
    ]
    shares = {step: float(each.mean()) for step, each in zip(steps, handoff, strict=True)}
    return Search(tuple(scenes), shares, number, seed)


def route_saved(run: Run, step: int, seed: int, followed: Followed) -> dict[str, np.ndarray]:
    """Return the criteria of the search for every state: the spread of the candidates, clarity and handoff."""
    routed = route(run.policy(step, seed), followed.observation, followed.action, followed.latent)
    candidates, action = np.asarray(routed.candidates), np.asarray(followed.action)
    index = np.arange(len(action))
    spreads = np.sqrt(np.square(candidates - candidates.mean(1, keepdims=True)).mean((1, 2)))
    step_length = np.linalg.norm(np.asarray(routed.moved) - candidates[index, np.asarray(routed.winner)], axis=-1)
    before = np.linalg.norm(candidates[index, np.asarray(routed.winner)] - action, axis=-1)
    handoff = np.asarray(routed.winner != routed.winner_after)
    inside = (np.abs(candidates[index, np.asarray(routed.winner)]) < 0.95).all(-1)  # winners at the bounds cannot move
    clarity = np.minimum(step_length, 0.2) * inside - 0.5 * before
    return {"spread": spreads, "clarity": clarity, "handoff": handoff}


def make_scene(run: Run, regime: str, step: int, seed: int, followed: Followed, number: int) -> Scene:
    policy, one = run.policy(step, seed), slice(number, number + 1)
    routed = route(policy, followed.observation[one], followed.action[one], followed.latent[one])
    return Scene(
        regime,
        step,
        np.asarray(followed.observation[number]),
        np.asarray(followed.action[number]),
        np.asarray(routed.candidates[0]),
        int(routed.winner[0]),
        np.asarray(routed.moved[0]),
        int(routed.winner_after[0]),
        policy,
    )


@dataclass(frozen=True)
class Plane:
    """A plane of actions: its points are `origin + x first + y second`."""

    origin: np.ndarray
    axes: np.ndarray  # [2, action], orthonormal
    half: float  # the figure shows -half to half on both axes

    def seen(self, actions: np.ndarray) -> np.ndarray:
        """Return the coordinates of actions that are projected orthogonally onto the plane."""
        return (actions - self.origin) @ self.axes.T

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the grid of one axis, and the actions [pixels, pixels, action]."""
        grid = np.linspace(-self.half, self.half, PIXELS)
        x, y = np.meshgrid(grid, grid)
        return grid, self.origin + x[..., None] * self.axes[0] + y[..., None] * self.axes[1]


def plane_of(scene: Scene) -> Plane:
    """Return the plane of all actions, or the plane that shows the winner's step and the spread of the candidates."""
    size = len(scene.action)
    if size == 2:
        return Plane(np.zeros(2), np.eye(2), 1.15)
    first = scene.moved - scene.candidates[scene.winner]
    first = first / (np.linalg.norm(first) + 1e-12)
    rest = scene.candidates - scene.candidates.mean(0)
    rest = rest - np.outer(rest @ first, first)
    second = np.linalg.svd(rest, full_matrices=False)[2][0]
    second = second - (second @ first) * first
    axes = np.stack([first, second / (np.linalg.norm(second) + 1e-12)])
    half = 1.2 * np.abs((scene.candidates - scene.action) @ axes.T).max()
    return Plane(scene.action, axes, max(float(half), 0.1))


@styled
def voronoi_figure(search: Search) -> Figure:
    """Draw the three regimes at one state."""
    figure = Figure(figsize=(11.4, 4.9), layout="constrained")
    titles = {
        "spread": "candidates spread",
        "handoff": "handoff: the winner moves, another takes over",
        "stable": "stable: the winner moves and stays the nearest",
    }
    for axes, scene in zip(figure.subplots(1, 3), search.scenes, strict=True):
        draw_scene(axes, scene, moves=scene.regime != "spread")
        axes.set_title(f"{titles[scene.regime]}\nafter {scene.step:,} updates", fontsize=9.5)
    dot = {"marker": "o", "lw": 0}
    figure.legend(
        handles=[
            Line2D([], [], marker="^", lw=0, mfc="none", mec=INK, ms=8, label="data action"),
            Line2D([], [], **dot, color=MUTED, label="candidates, in their cells"),
            Line2D([], [], **dot, color=REACHED, ms=8, label="winner"),
            Line2D([], [], **dot, mfc="none", mec=REACHED, ms=8, label="the winner after a step along Q"),
            Line2D([], [], **dot, color=MISSED, ms=8, label="nearest afterwards"),
            Line2D([], [], color=INK, lw=0.8, ls="--", label="Q"),
        ],
        loc="outside lower center",
        ncols=6,
        fontsize=8.5,
    )
    return figure


def draw_scene(axes: Any, scene: Scene, moves: bool) -> None:
    """Draw cells, Q, candidates, the data action, and the step of the winner."""
    plane = plane_of(scene)
    grid, points = plane.points()
    candidates = scene.candidates.copy()
    if moves:
        candidates[scene.winner] = scene.moved
    owner = np.square(points[:, :, None] - candidates).sum(-1).argmin(-1)
    highlighted = scene.winner_after if moves else scene.winner
    extent = (grid[0], grid[-1], grid[0], grid[-1])
    axes.imshow(owner, origin="lower", extent=extent, cmap=cell_colours(len(candidates)), interpolation="nearest",
                vmin=0, vmax=len(candidates) - 1, zorder=0)  # fmt: skip
    shade = np.where(owner == highlighted, 1.0, np.nan)
    axes.imshow(shade, origin="lower", extent=extent, cmap="Wistia", vmin=0, vmax=1.4, alpha=0.4, zorder=0.5)
    draw_q(axes, scene, grid, points)
    seen, target, moved = plane.seen(scene.candidates), plane.seen(scene.action), plane.seen(scene.moved)
    axes.scatter(*seen.T, s=22, color=MUTED, edgecolor="white", lw=0.7, zorder=3)
    winner = seen[scene.winner]
    axes.plot(*zip(winner, target, strict=True), color=REACHED, lw=1.3, zorder=3)
    axes.scatter(*winner, s=62, color=REACHED, edgecolor="white", zorder=5)
    if moves:
        arrow = {"arrowstyle": "->", "ls": "--", "color": REACHED, "lw": 1.4}
        axes.annotate("", moved, winner, arrowprops=arrow, zorder=5)
        axes.scatter(*moved, s=62, facecolor="white", edgecolor=REACHED, lw=1.6, zorder=5)
        after = moved if scene.winner_after == scene.winner else seen[scene.winner_after]
        axes.plot(*zip(after, target, strict=True), color=MISSED, lw=1.3, zorder=3)
        if scene.winner_after != scene.winner:
            axes.scatter(*after, s=62, color=MISSED, edgecolor="white", zorder=5)
    axes.scatter(*target, s=80, marker="^", facecolor="white", edgecolor=INK, lw=1.5, zorder=6)
    axes.set(xlim=(grid[0], grid[-1]), ylim=(grid[0], grid[-1]), aspect="equal", xticks=[], yticks=[])
    axes.grid(False)


def draw_q(axes: Any, scene: Scene, grid: np.ndarray, points: np.ndarray) -> None:
    """Draw labelled contours of the minimum of the critics over the plane, inside the action bounds."""
    policy = scene.policy
    state = policy.standardisation(jnp.asarray(scene.state, jnp.float32))
    flat = jnp.asarray(points.reshape(-1, points.shape[-1]), jnp.float32)
    value = policy.networks.critic(jnp.broadcast_to(state, (len(flat), *state.shape)), flat).min(0)
    value = np.asarray(value).reshape(points.shape[:2])
    value = np.where((np.abs(points) <= 1).all(-1), value, np.nan)
    lines = axes.contour(grid, grid, value, levels=7, colors=INK, linestyles="--", linewidths=0.6, alpha=0.7, zorder=2)
    axes.clabel(lines, fontsize=6.5, fmt="%.2f" if np.ptp(lines.levels) < 0.7 else "%.1f")


def write_animation(run: Run, search: Search, path: Path) -> None:
    """Write a GIF of the cells at the figure's state over all checkpoints of the run."""
    from matplotlib.animation import PillowWriter

    followed = follow(run, SEARCHED)
    scenes = [make_scene(run, "stable", step, search.seed, followed, search.number) for step in run.steps]
    with figure_style():
        figure = Figure(figsize=(4.4, 4.8), layout="constrained")
        axes = figure.subplots()
        writer = PillowWriter(fps=FRAMES_A_SECOND)
        with writer.saving(figure, path, dpi=100):
            for scene in scenes:
                axes.clear()
                draw_scene(axes, scene, moves=False)
                axes.set_title(f"after {scene.step:,} updates", fontsize=10)
                writer.grab_frame()


def caption(search: Search) -> str:
    """Return the caption of the figure, with its numbers."""
    shares = ", ".join(f"{share:.0%} after {step:,}" for step, share in search.handoff_share.items())
    return (
        f"state {search.number} of {SEARCHED}, seed {search.seed}; "
        f"winners that lose their action in one step of the figure: {shares}"
    )


def cell_colours(count: int) -> ListedColormap:
    """Return pale colours; neighbours in the list differ clearly."""
    hues = [to_rgb(SERIES[index % len(SERIES)]) for index in range(count)]
    strengths = [0.13 + 0.08 * (index // len(SERIES) % 3) for index in range(count)]
    return ListedColormap([tuple(1 - s * (1 - c) for c in hue) for hue, s in zip(hues, strengths, strict=True)])
