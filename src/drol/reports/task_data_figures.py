"""Describe the data of a task, and draw histograms and visited places."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle, Rectangle

from drol.data.trajectories import LARGEST, Trajectories, spread, trajectories_of
from drol.machine import bytes_in_words
from drol.reports.figure_style import GOAL, INK, MUTED, REACHED, thousands
from drol.tasks.base import Maze, Task

VISITS = LinearSegmentedColormap.from_list("visits", ["white", REACHED, INK])
BINS = 40
SHOWN_PATHS = 6
POSITIONS = 200_000  # most positions, evenly spread over the data


def describe(task: Task) -> dict[str, str]:
    """Return the entries of a table about the data, by title."""
    looked_at = task.train.leading(LARGEST)
    train = trajectories_of(looked_at)
    spec = task.train.spec
    validation = task.validation
    trajectories = f"{looked_at.size:,} in {len(train.first):,} trajectories"
    whole = looked_at.size == task.train.size
    return {
        "task": task.name,
        "transitions": trajectories if whole else f"{task.train.size:,} on disk; the first {trajectories} are shown",
        "validation": f"{validation.size:,}" if validation is not None else "none",
        "observation": " x ".join(map(str, spec.observation_shape)),
        "action": str(spec.action_size),
        "length": middle(train.length),
        "return": middle(train.returns()),
        "reward": f"{train.reward.min():g} to {train.reward.max():g}, mean {train.reward.mean():.4g}",
        "task ends": f"{(train.continues == 0).sum():,} transitions, in {np.sum(ended(train)):,} trajectories",
        "environment": "yes" if task.make_environment is not None else "none: evaluate policies with `--offline`",
        "memory": bytes_in_words(task.train.nbytes),
        "fingerprint": task.train.fingerprint()[:16],
    }


def middle(values: np.ndarray) -> str:
    """Format the range and the median of values."""
    return f"{values.min():g} to {values.max():g}, median {np.median(values):g}"


def ended(trajectories: Trajectories) -> np.ndarray:
    """Return whether each trajectory [trajectories] contains an end of the task."""
    return np.minimum.reduceat(trajectories.continues, trajectories.first) == 0


def draw_histogram(axes: Any, values: np.ndarray, label: str) -> None:
    """Draw a histogram of trajectories; equal values give one bar of width one."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        axes.bar([low], [len(values)], width=1, color=REACHED)
        axes.set_xlim(low - 4, low + 4)
    else:
        axes.hist(values, bins=BINS, color=REACHED)
    axes.axvline(np.median(values), color=GOAL, lw=2)
    axes.set_title(f"{axes.get_title()}, median {np.median(values):,.4g}")
    axes.set(xlabel=label, ylabel="trajectories")
    axes.ticklabel_format(useOffset=False, axis="x")
    axes.locator_params(axis="x", nbins=5)
    axes.yaxis.set_major_formatter(thousands)


def positions(task: Task, index: np.ndarray) -> np.ndarray:
    """Return the positions [transitions, 2] of the transitions with these numbers."""
    return np.asarray(task.train.take(jnp.asarray(index)).observation)[:, :2]


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


def draw_visits(axes: Any, task: Task, train: Trajectories) -> None:
    """Draw the visits to each place on a logarithmic scale, and the paths of a few trajectories."""
    assert task.maze is not None
    draw_maze(axes, task.maze)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    position = positions(task, spread(task.train.size, POSITIONS))
    bins = [np.linspace(left, right, 101), np.linspace(bottom, top, 101)]
    visits = np.histogram2d(position[:, 0], position[:, 1], bins)[0]
    axes.imshow(
        np.ma.masked_equal(np.log1p(visits.T), 0), cmap=VISITS, vmin=0, origin="lower",
        extent=(left, right, bottom, top), interpolation="nearest", alpha=0.85, zorder=1.2,
    )  # fmt: skip
    for number in spread(len(train.first), SHOWN_PATHS):
        path = positions(task, int(train.first[number]) + np.arange(int(train.length[number])))
        axes.plot(path[:, 0], path[:, 1], color="white", lw=0.7, alpha=0.7, zorder=1.3)
    axes.plot(*task.maze.goal, marker="*", ms=11, color=GOAL, mec="white", mew=0.8, zorder=3)
    axes.set_xlabel(f"{SHOWN_PATHS} trajectories in white, the goal as a star", color=MUTED, fontsize=8)
