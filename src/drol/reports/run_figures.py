"""Figures of one run. Each function returns a matplotlib figure and draws what was computed, nothing else."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from drol.data.trajectories import LARGEST, spread
from drol.policy import Policy
from drol.reports.figure_style import GOAL, INK, MISSED, MUTED, REACHED, SERIES, styled, thousands
from drol.runs.records import EvaluationRow, MetricsRow
from drol.tasks.base import Maze, Task

DRAWS = 16  # actions of a policy that are drawn for a state
NEIGHBOURS = 80  # data actions that are shown around a state
COMPARED = 200_000  # data states, at most, among which neighbours are searched


@styled
def learning_curve(evaluations: Sequence[EvaluationRow], score_name: str) -> Figure:
    """Draw the score of every seed at every evaluation, and their mean."""
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.subplots()
    seeds = sorted({row.seed for row in evaluations})
    steps = sorted({row.step for row in evaluations})
    known = {(row.step, row.seed): row.score for row in evaluations}
    scores = np.asarray([[known.get((step, seed), np.nan) for seed in seeds] for step in steps], float)
    several = len(seeds) > 1
    for index, seed in enumerate(seeds):
        axes.plot(
            steps, scores[:, index], color=SERIES[index % len(SERIES)],
            lw=1.2 if several else 2.2, alpha=0.6 if several else 1, marker="o", ms=3.5, label=f"seed {seed}",
        )  # fmt: skip
    if several:
        axes.plot(steps, scores.mean(1), color=INK, lw=2.4, marker="o", ms=4, label="mean")
        axes.legend(loc="lower right", ncols=2)
    last = scores[-1].mean()
    if np.isfinite(last):  # not while a seed is still being evaluated
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"{last:.0f}", (steps[-1], last), **place, color=INK, weight="bold")
    axes.set(xlabel="updates", ylabel=score_name, xlim=(0, steps[-1] * 1.06 if steps[-1] else 1))
    if "%" in score_name:
        axes.set_ylim(-3, 103)
    axes.xaxis.set_major_formatter(thousands)
    return figure


@styled
def metric_panels(
    metrics: Sequence[MetricsRow], panels: Sequence[tuple[str, str]], others: Sequence[MetricsRow] = ()
) -> Figure:
    """Draw one panel for each (metric, title), with a line for each seed, dashed for those of another run."""
    figure = Figure(figsize=(3.1 * len(panels), 2.5), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        rows = [row for row in metrics if name in row.values]
        for index, seed in enumerate(sorted({row.seed for row in rows})):
            own = [row for row in rows if row.seed == seed]
            steps, values = [row.step for row in own], [row.values[name] for row in own]
            axes.plot(steps, values, color=SERIES[index % len(SERIES)], lw=1.6, marker="o" if len(own) == 1 else None)
        beside = [row for row in others if name in row.values]
        if beside:
            steps, values = [row.step for row in beside], [row.values[name] for row in beside]
            axes.plot(steps, values, color=MUTED, lw=1.4, ls="--")
        axes.set(title=title, xlabel="updates")
        if all(row.values[name] >= 0 for row in rows):
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(thousands)
    return figure


@styled
def maze_trajectories(maze: Maze, panels: Sequence[tuple[str, list[np.ndarray], list[bool]]]) -> Figure:
    """Draw the maze from above with episodes coloured by their outcome; a panel for each (title, paths, successes)."""
    rows, columns = maze.walls.shape
    width = min(10.5, 3.5 * len(panels))
    figure = Figure(figsize=(width, width / len(panels) * rows / columns + 0.75), layout="constrained")
    for axes, (title, paths, successes) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        draw_maze(axes, maze)
        for success in (False, True):  # those that arrived on top
            for path, outcome in zip(paths, successes, strict=True):
                if outcome == success:
                    color = REACHED if success else MISSED
                    axes.plot(path[:, 0], path[:, 1], color=color, lw=0.9, alpha=0.55, solid_capstyle="round")
                    axes.plot(*path[-1], marker="o", ms=2.6, color=color, mec="white", mew=0.4)
        axes.set_title(f"{title}: {sum(successes)} of {len(successes)} arrive", fontsize=9.5)
    figure.legend(
        handles=[
            Line2D([], [], color=REACHED, lw=2, label="reached the goal"),
            Line2D([], [], color=MISSED, lw=2, label="did not"),
            Line2D([], [], color=GOAL, marker="o", lw=0, ms=8, alpha=0.7, label="goal"),
        ],
        loc="outside lower center",
        ncols=3,
        fontsize=8.5,
    )
    return figure


def draw_maze(axes: Any, maze: Maze) -> None:
    """Draw the walls and the goal of a maze."""
    half = maze.unit / 2
    for row, column in np.argwhere(maze.walls):
        x, y = maze.unit * column - maze.offset[0], maze.unit * row - maze.offset[1]
        axes.add_patch(
            Rectangle((x - half, y - half), maze.unit, maze.unit, facecolor="#c9d1db", edgecolor="#c9d1db", lw=0.5)
        )
    axes.add_patch(Circle(maze.goal, maze.goal_radius, facecolor=GOAL, alpha=0.55, edgecolor=GOAL, zorder=1.5))
    rows, columns = maze.walls.shape
    low_x, low_y = -maze.offset[0] - half, -maze.offset[1] - half
    axes.set(
        xlim=(low_x, low_x + columns * maze.unit),
        ylim=(low_y, low_y + rows * maze.unit),
        aspect="equal",
        xticks=[],
        yticks=[],
    )
    axes.grid(False)
    axes.spines[:].set_visible(False)


@styled
def states_map(maze: Maze, states: Sequence[np.ndarray], titles: Sequence[str]) -> Figure:
    """Draw where in the maze the states of `drawn_actions` are."""
    figure = Figure(figsize=(2.6, 2.6 * maze.walls.shape[0] / maze.walls.shape[1]), layout="constrained")
    axes = figure.subplots()
    draw_maze(axes, maze)
    for state, title in zip(states, titles, strict=True):
        axes.text(state[0], state[1], title, ha="center", va="center", color="white", weight="bold", fontsize=8.5,
                  bbox={"boxstyle": "circle,pad=0.25", "facecolor": INK, "edgecolor": "white"})  # fmt: skip
    return figure


@styled
def drawn_actions(
    task: Task, policies: Sequence[tuple[str, Policy]], states: Sequence[np.ndarray], titles: Sequence[str], cells: bool
) -> Figure:
    """Draw actions of a policy in the square of actions, at a few states (columns) and times (rows).

    Grey dots are the data actions of the nearest states; contours are the critic, dark where it is high. The draws are
    made with the same keys in every panel. With `cells`, each draw has its Voronoi cell in a pale colour: the data
    actions that would be routed to it.
    """
    figure = Figure(figsize=(2.35 * len(states) + 0.4, 2.35 * len(policies) + 0.5), layout="constrained")
    data = task.train.leading(LARGEST)
    data = data.take(jnp.asarray(spread(data.size, COMPARED)))
    observations, actions = np.asarray(data.observation), np.asarray(data.action)
    scale = observations.std(0) + 1e-6
    keys = jax.random.split(jax.random.key(0), DRAWS)
    all_axes = figure.subplots(len(policies), len(states), squeeze=False, sharex=True, sharey=True)
    for row, (label, policy) in zip(all_axes, policies, strict=True):
        for axes, state in zip(row, states, strict=True):
            drawn = np.asarray(policy.draw_each(np.tile(state, (DRAWS, 1)), keys))
            if cells:
                draw_cells(axes, drawn)
            nearest = np.argsort(np.square((observations - state) / scale).sum(-1))[:NEIGHBOURS]
            axes.scatter(*actions[nearest].T, s=3, color=MUTED, alpha=0.45, lw=0)
            draw_critic(axes, policy, state)
            axes.scatter(*drawn.T, s=26, color=REACHED, edgecolor="white", lw=0.9, zorder=4)
            axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            axes.grid(False)
        row[0].set_ylabel(label, fontsize=9.5)
    for axes, title in zip(all_axes[0], titles, strict=True):
        axes.set_title(title, fontsize=9.5)
    return figure


def draw_cells(axes: Any, points: np.ndarray) -> None:
    """Colour the square of actions by the nearest of some points."""
    grid = np.linspace(-1.15, 1.15, 230)
    pixels = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    owner = np.square(pixels[:, None] - points).sum(-1).argmin(-1).reshape(len(grid), -1)
    axes.imshow(
        owner, origin="lower", extent=(-1.15, 1.15, -1.15, 1.15), cmap=cell_colours(len(points)),
        vmin=0, vmax=len(points) - 1, interpolation="nearest", zorder=0,
    )  # fmt: skip


def cell_colours(count: int) -> ListedColormap:
    """Return pale colours, neighbours in the list well apart."""
    hues = [to_rgb(SERIES[index % len(SERIES)]) for index in range(count)]
    strengths = [0.13 + 0.08 * (index // len(SERIES) % 3) for index in range(count)]
    return ListedColormap([tuple(1 - s * (1 - c) for c in hue) for hue, s in zip(hues, strengths, strict=True)])


def draw_critic(axes: Any, policy: Policy, state: np.ndarray) -> None:
    """Draw contours of the mean critic over the box of actions, where the policy has one."""
    critics = policy.algorithm.critics(policy.networks)
    if critics is None:
        return
    x, y = np.meshgrid(*[np.linspace(-1, 1, 34)] * 2)
    points = jnp.asarray(np.stack([x, y], -1).reshape(-1, 2), jnp.float32)
    observation = policy.standardisation(jnp.asarray(state, jnp.float32))
    value = np.asarray(critics(jnp.tile(observation, (len(points), 1)), points).mean(0)).reshape(x.shape)
    if np.ptp(value) > 0:
        low = value.min() - np.ptp(value)
        axes.contour(x, y, value, levels=6, cmap="Greys", linewidths=0.9, alpha=0.9, vmin=low, zorder=2)
