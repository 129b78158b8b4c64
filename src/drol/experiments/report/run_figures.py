"""Figures of one run. Each function returns a matplotlib figure and draws what was computed, nothing else."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle

from drol.policy import Policy
from drol.tasks.base import Maze, Task

INK, MUTED, GRID = "#1d2530", "#6b7685", "#e4e8ee"
REACHED, MISSED, GOAL = "#0b7a75", "#d1495b", "#edae49"
SERIES = ("#0b7a75", "#30638e", "#d1495b", "#edae49", "#6a4c93", "#8d6a9f", "#4f772d", "#bc4b51")

mpl.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "legend.frameon": False,
        "figure.facecolor": "white",
        "svg.fonttype": "none",
        "svg.hashsalt": "drol",
    }
)


def learning_curve(evaluations: Sequence[dict[str, Any]], score_name: str) -> Figure:
    """The score of every seed at every evaluation, and their mean."""
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.subplots()
    seeds = sorted({row["seed"] for row in evaluations})
    steps = sorted({row["step"] for row in evaluations})
    scores = np.asarray(
        [
            [next(row["score"] for row in evaluations if (row["step"], row["seed"]) == (step, seed)) for seed in seeds]
            for step in steps
        ]
    )
    for index, seed in enumerate(seeds):
        several = len(seeds) > 1
        axes.plot(
            steps, scores[:, index], color=SERIES[index % len(SERIES)],
            lw=1.2 if several else 2.2, alpha=0.6 if several else 1, marker="o", ms=3.5, label=f"seed {seed}",
        )  # fmt: skip
    if len(seeds) > 1:
        axes.plot(steps, scores.mean(1), color=INK, lw=2.4, marker="o", ms=4, label="mean")
        axes.legend(loc="lower right", ncols=2)
    last = scores[-1].mean()
    axes.annotate(
        f"{last:.0f}",
        (steps[-1], last),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=INK,
        weight="bold",
    )
    axes.set(xlabel="updates", ylabel=score_name, xlim=(0, steps[-1] * 1.06 if steps[-1] else 1))
    if "%" in score_name:
        axes.set_ylim(-3, 103)
    axes.xaxis.set_major_formatter(thousands)
    return figure


def maze_trajectories(maze: Maze, panels: Sequence[tuple[str, list[np.ndarray], list[bool]]]) -> Figure:
    """The maze from above with episodes coloured by their outcome; a panel for each (title, paths, successes)."""
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


def candidate_cells(
    task: Task,
    policies: Sequence[tuple[str, Policy]],
    states: Sequence[np.ndarray],
    titles: Sequence[str],
    count: int = 16,
) -> Figure:
    """Candidates in the square of actions at a few states (columns) and times (rows).

    Each pale region holds the actions that would be routed to its candidate (a Voronoi cell); grey dots are the data
    actions of the nearest states; contours are the critic, dark where it is high. The same latents in every panel.
    """
    figure = Figure(figsize=(2.35 * len(states) + 0.4, 2.35 * len(policies) + 0.5), layout="constrained")
    grid = np.linspace(-1.15, 1.15, 230)
    pixels = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    observations = np.asarray(task.train.observation[task.train.start])
    actions = np.asarray(task.train.action[task.train.start])
    spread = observations.std(0) + 1e-6
    all_axes = figure.subplots(len(policies), len(states), squeeze=False, sharex=True, sharey=True)
    for row, (label, policy) in zip(all_axes, policies, strict=True):
        for axes, state in zip(row, states, strict=True):
            keys = jax.random.split(jax.random.key(0), count)
            candidates = np.asarray(policy.act(np.tile(state, (count, 1)), keys))
            owner = np.square(pixels[:, None] - candidates).sum(-1).argmin(-1).reshape(len(grid), -1)
            axes.imshow(
                owner, origin="lower", extent=(-1.15, 1.15, -1.15, 1.15), cmap=cell_colours(count),
                vmin=0, vmax=count - 1, interpolation="nearest", zorder=0,
            )  # fmt: skip
            nearest = np.argsort(np.square((observations - state) / spread).sum(-1))[:80]
            axes.scatter(*actions[nearest].T, s=3, color=MUTED, alpha=0.45, lw=0)
            draw_critic(axes, policy, state, grid)
            axes.scatter(*candidates.T, s=26, color=REACHED, edgecolor="white", lw=0.9, zorder=4)
            axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            axes.grid(False)
        row[0].set_ylabel(label, fontsize=9.5)
    for axes, title in zip(all_axes[0], titles, strict=True):
        axes.set_title(title, fontsize=9.5)
    return figure


def draw_critic(axes: Any, policy: Policy, state: np.ndarray, grid: np.ndarray) -> None:
    """Contours of the mean critic over the box of actions, where the policy has one."""
    critics = policy.algorithm.critics(policy.networks)
    if critics is None:
        return
    inside = grid[np.abs(grid) <= 1][::6]
    x, y = np.meshgrid(inside, inside)
    points = jnp.asarray(np.stack([x, y], -1).reshape(-1, 2), jnp.float32)
    observation = policy.standardisation(jnp.asarray(state, jnp.float32))
    value = np.asarray(critics(jnp.tile(observation, (len(points), 1)), points).mean(0)).reshape(x.shape)
    axes.contour(
        x, y, value, levels=6, cmap="Greys", linewidths=0.9, alpha=0.9, vmin=value.min() - np.ptp(value), zorder=2
    )


def cell_colours(count: int) -> ListedColormap:
    """Pale colours, neighbours in the list well apart."""
    hues = [to_rgb(SERIES[index % len(SERIES)]) for index in range(count)]
    strengths = [0.13 + 0.08 * (index // len(SERIES) % 3) for index in range(count)]
    return ListedColormap([tuple(1 - s * (1 - c) for c in hue) for hue, s in zip(hues, strengths, strict=True)])


def states_map(maze: Maze, states: Sequence[np.ndarray], titles: Sequence[str]) -> Figure:
    """Where in the maze the states of `candidate_cells` are."""
    figure = Figure(figsize=(2.6, 2.6 * maze.walls.shape[0] / maze.walls.shape[1]), layout="constrained")
    axes = figure.subplots()
    draw_maze(axes, maze)
    for state, title in zip(states, titles, strict=True):
        axes.text(state[0], state[1], title, ha="center", va="center", color="white", weight="bold", fontsize=8.5,
                  bbox={"boxstyle": "circle,pad=0.25", "facecolor": INK, "edgecolor": "white"})  # fmt: skip
    return figure


def metric_panels(metrics: Sequence[dict[str, Any]], panels: Sequence[tuple[str, str]]) -> Figure:
    """One panel for each (metric, title), a line for each seed."""
    figure = Figure(figsize=(3.1 * len(panels), 2.5), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for index, seed in enumerate(sorted({row["seed"] for row in metrics})):
            rows = [row for row in metrics if row["seed"] == seed]
            axes.plot(
                [row["step"] for row in rows], [row[name] for row in rows], color=SERIES[index % len(SERIES)], lw=1.6
            )
        axes.set(title=title, xlabel="updates")
        if all(row[name] >= 0 for row in metrics):
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(thousands)
    return figure


def thousands(value: float, _: float | None = None) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
