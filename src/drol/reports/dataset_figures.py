"""The figures of a dataset's page."""

from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from drol.data.importing.relations import LAGS, Relations
from drol.data.trajectories import spread
from drol.reports.dataset_episodes import DatasetSample, Outlier
from drol.reports.figure_style import GOAL, INK, MISSED, MUTED, REACHED, SERIES, styled
from drol.reports.task_data_figures import VISITS, draw_histogram, draw_visits, ended

EPISODES = 12
LINES = 6  # most lines in one panel
MARGINALS = 48
BINS = 40
MOST_NAMES = 40  # most names at an axis
FRAMES = 5


def grid(count: int, width: float = 2.6, height: float = 1.7, columns: int = 4) -> tuple[Figure, list[Any]]:
    """Return a figure with `count` panels."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
    panels = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    for panel in panels[count:]:
        panel.set_visible(False)
    return figure, panels[:count]


def short(name: str, characters: int = 24) -> str:
    """Return the end of a long name."""
    return name if len(name) <= characters else f"...{name[-characters + 3 :]}"


@styled
def episode_figure(sample: DatasetSample, what: str, places: np.ndarray) -> Figure:
    """Draw some episodes as small multiples: the numbers that change most, divided by their standard deviation."""
    values = (sample.observation if what == "observation" else sample.action).astype(np.float64)
    middle, scale = values.mean(0), values.std(0)
    shown = np.sort(np.argsort(-scale, kind="stable")[:LINES]) if what == "action" else most_varied(values)
    scale = np.where(scale > 0, scale, 1)
    figure, panels = grid(len(places))
    for panel, place in zip(panels, places, strict=True):
        rows = sample.rows_of(int(place))
        part = values[rows] if what == "observation" else values[rows][:-1]
        for line, number in enumerate(shown):
            drawn = (part[:, number] - middle[number]) / scale[number] if what == "observation" else part[:, number]
            panel.plot(drawn, color=SERIES[line % len(SERIES)], lw=1)
        number = int(sample.chosen[place])
        total = sample.trajectories.returns()[number]
        panel.set_title(f"{number}: return {total:.4g}", fontsize=8, color=INK)
        panel.tick_params(labelsize=7)
        panel.locator_params(nbins=4)
    handles = [panels[0].plot([], [], color=SERIES[line % len(SERIES)])[0] for line in range(len(shown))]
    labels = [short(sample.names[what][number]) for number in shown]
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), fontsize=8)
    return figure


def most_varied(values: np.ndarray) -> np.ndarray:
    """Return the indices of observations that change most between rows, relative to their standard deviation."""
    scale = values.std(0)
    change = np.abs(np.diff(values, axis=0)).mean(0) / np.where(scale > 0, scale, 1)
    change[scale == 0] = -1
    return np.sort(np.argsort(-change, kind="stable")[:LINES])


@styled
def image_figure(sample: DatasetSample, places: np.ndarray) -> Figure:
    """Draw frames of some episodes, from the first to the last."""
    figure, panels = grid(len(places) * FRAMES, 1.7, 1.7, FRAMES)
    for row, place in enumerate(places):
        images = sample.observation[sample.rows_of(int(place))]
        steps = np.linspace(0, len(images) - 1, FRAMES).round().astype(int)
        for column, step in enumerate(steps):
            panel = panels[row * FRAMES + column]
            frame = images[step][..., -3:] if images.shape[-1] >= 3 else images[step][..., -1]
            panel.imshow(np.asarray(frame, np.uint8), cmap=None if frame.ndim == 3 else "gray")
            panel.set_title(f"{int(sample.chosen[place])}: step {step}", fontsize=7)
            panel.axis("off")
    return figure


@styled
def marginal_figure(sample: DatasetSample, what: str) -> Figure:
    """Draw a histogram of each number."""
    values = sample.observation if what == "observation" else sample.action[~sample.last]
    names = sample.names[what][:MARGINALS]
    figure, panels = grid(len(names), 2.1, 1.4, 5)
    for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
        column = values[:, number].astype(np.float64)
        low, high = column.min(), column.max()
        if low == high:
            panel.axvline(low, color=MISSED, lw=2)
            panel.set_title(f"{short(name)}: always {low:.4g}", fontsize=7, color=MISSED)
        else:
            panel.hist(column, bins=BINS, color=REACHED)
            panel.set_title(short(name), fontsize=8)
        panel.tick_params(labelsize=6)
        panel.set_yticks([])
        panel.locator_params(axis="x", nbins=3)
    return figure


def plane_of(sample: DatasetSample) -> tuple[np.ndarray, float]:
    """Project observations onto their two principal directions [rows, 2]; return also their share of the variance."""
    values = sample.observation.astype(np.float64)
    scale = values.std(0)
    values = (values - values.mean(0)) / np.where(scale > 0, scale, 1)
    size, directions = np.linalg.eigh(np.cov(values, rowvar=False).reshape(values.shape[1], -1))
    plane = values @ directions[:, ::-1][:, :2]
    plane = plane if plane.shape[1] == 2 else np.column_stack((plane, np.zeros(len(plane))))
    return plane, float(size[-2:].sum() / max(size.sum(), 1e-30))


@styled
def coverage_figure(sample: DatasetSample, plane: np.ndarray) -> Figure:
    """Draw the visited places: in the maze, or in a plane [rows, 2]."""
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    axes = figure.subplots()
    if sample.task.maze is not None:
        draw_visits(axes, sample.task, sample.trajectories)
        return figure
    counts, x, y = np.histogram2d(plane[:, 0], plane[:, 1], 80)
    axes.imshow(
        np.ma.masked_equal(np.log1p(counts.T), 0), cmap=VISITS, origin="lower", aspect="auto", vmin=0,
        extent=(x[0], x[-1], y[0], y[-1]), interpolation="nearest",
    )  # fmt: skip
    starts = np.concatenate(([0], np.flatnonzero(sample.last)[:-1] + 1))
    axes.plot(plane[starts, 0], plane[starts, 1], ".", color=GOAL, ms=4, label="first observations")
    axes.legend(fontsize=8)
    axes.set(xlabel="first principal direction", ylabel="second")
    return figure


@styled
def relation_figure(sample: DatasetSample, found: Relations) -> Figure:
    """Draw the correlation of each action with the next change of each observation, and the largest one by lag."""
    actions, observations = sample.names["action"], sample.names["observation"]
    shown = np.arange(len(observations))
    if len(shown) > MOST_NAMES:
        shown = np.sort(np.argsort(-np.abs(found.now).max(0), kind="stable")[:MOST_NAMES])
    height = max(2.4, 0.24 * len(actions) + 1.2)
    figure = Figure(figsize=(4 + 0.2 * len(shown) + 3.2, height + 0.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[max(1.0, 0.09 * len(shown)), 1])
    image = left.imshow(found.now[:, shown], cmap="RdBu_r", norm=TwoSlopeNorm(0, -1, 1), aspect="auto")
    left.set_xticks(range(len(shown)), [short(observations[number], 18) for number in shown], rotation=90, fontsize=7)
    left.set_yticks(range(len(actions)), [short(name, 18) for name in actions], fontsize=7)
    left.set_title("action with the next change", fontsize=9)
    left.grid(False)
    figure.colorbar(image, ax=left, shrink=0.8)
    strength = np.abs(found.change).max(2)  # [lags, actions]
    for number in np.argsort(-strength.max(0), kind="stable")[: len(SERIES)]:
        right.plot(LAGS, strength[:, number], marker="o", ms=3, color=SERIES[number % len(SERIES)],
                   label=short(actions[number], 16))  # fmt: skip
    right.axvline(0, color=MUTED, lw=1)
    right.set(xlabel="steps from the action to the change", ylim=(0, 1.05))
    right.set_title("largest correlation by delay", fontsize=9)
    right.legend(fontsize=7)
    return figure


@styled
def return_figure(sample: DatasetSample) -> Figure:
    """Draw returns, lengths, and returns against lengths."""
    train = sample.trajectories
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    panels = figure.subplots(1, 3)
    for panel, title in zip(panels, ("returns", "lengths", "return by length"), strict=True):
        panel.set_title(title)
    draw_histogram(panels[0], train.returns(), "sum of rewards of an episode")
    draw_histogram(panels[1], train.length, "transitions of an episode")
    over, total, some = ended(train), train.returns(), spread(len(train.first), 5000)
    for mask, colour, label in ((over, REACHED, "the task ended"), (~over, MISSED, "cut")):
        chosen = some[mask[some]]
        panels[2].plot(train.length[chosen], total[chosen], ".", ms=4, alpha=0.6, color=colour, label=label)
    panels[2].set(xlabel="transitions", ylabel="return")
    panels[2].legend(fontsize=8)
    return figure


def outlier_places(sample: DatasetSample, outliers: list[Outlier]) -> np.ndarray:
    """Return the places of outliers in `sample.chosen`."""
    return np.asarray([int(np.flatnonzero(sample.chosen == each.episode)[0]) for each in outliers], int)
