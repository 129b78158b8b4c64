"""Beyond the paper's figures: how ownership of data actions passes between latents, over training and against K."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter

from drol.errors import InputError
from drol.experiments.report.style import MUTED, SERIES, styled, thousands
from drol.paper.mechanism import MechanismRow
from drol.paper.reproduce.experiments import short_name

PANELS = (
    ("handover", "owner changed since the last checkpoint"),
    ("handoff", "owner lost by one step along Q"),
    ("cold", "latents that own nothing"),
    ("q_gap", "Q of winners minus others"),
    ("routed_bc_loss", "routed BC loss"),
)
SHARES = {"handover": 1.0, "handoff": 1.0, "cold": 0.1}  # and how far their axes reach, at least


@styled
def ownership_figure(rows: Sequence[MechanismRow]) -> Figure:
    """Draw each figure of the mechanism over training, a row of panels for each task, and at its end against K.

    Where tasks were run with several K, the others are drawn only at the end.
    """
    tasks = sorted({row.task for row in rows})
    if not tasks:
        raise InputError("no rows of `drol paper mechanism` were given")
    several = [task for task in tasks if len({row.candidates for row in rows if row.task == task}) > 1]
    followed = several or tasks
    figure = Figure(figsize=(2.9 * len(PANELS), 2.3 * (len(followed) + 1) + 0.7), layout="constrained")
    all_axes = figure.subplots(len(followed) + 1, len(PANELS), squeeze=False)
    ladder = sorted({row.candidates for row in rows})
    for line, task in zip(all_axes, followed, strict=False):
        own = [row for row in rows if row.task == task]
        for axes, (name, _) in zip(line, PANELS, strict=True):
            for index, candidates in enumerate(ladder):
                steps, low, middle, high = curve(own, candidates, name)
                axes.plot(steps, middle, color=SERIES[index % len(SERIES)], lw=1.6, label=f"K = {candidates}")
                axes.fill_between(steps, low, high, color=SERIES[index % len(SERIES)], alpha=0.15, lw=0)
            axes.xaxis.set_major_formatter(thousands)
        line[0].set_ylabel(short_name(task), fontsize=8.5)
        line[2].set_xlabel("updates")
    for axes, (_, title) in zip(all_axes[0], PANELS, strict=True):
        axes.set_title(title, fontsize=9)
    for axes, (name, _) in zip(all_axes[-1], PANELS, strict=True):
        draw_against_candidates(axes, rows, tasks, name)
    for column, (name, _) in zip(all_axes.T, PANELS, strict=True):
        show_zero(column, name)
    all_axes[-1][0].set_ylabel("at the end, against K", fontsize=8.5)
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=7, fontsize=8)
    figure.legend(*all_axes[-1][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def show_zero(column: Sequence[Any], name: str) -> None:
    """Let the axes of a column reach to zero, those of shares all alike, so that noise does not look like a trend."""
    highest = max(SHARES.get(name, 0.0), *(axes.get_ylim()[1] for axes in column))
    for axes in column:
        if name in SHARES:
            axes.set_ylim(-0.03 * highest, highest)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        else:
            low, high = axes.get_ylim()
            axes.set_ylim(min(low, 0.0), max(high, 0.0))


def draw_against_candidates(axes: Any, rows: Sequence[MechanismRow], tasks: Sequence[str], name: str) -> None:
    """Draw the last checkpoint against K, a line for each task; for handovers also what chance would give."""
    ladder = sorted({row.candidates for row in rows})
    for marker, task in zip("os^dv*", tasks, strict=False):
        own = [row for row in rows if row.task == task]
        last = max(row.step for row in own)
        points = [(each, values(own, each, name, last)) for each in ladder]
        points = [(each, found) for each, found in points if found]
        means = [float(np.mean(found)) for _, found in points]
        axes.plot([each for each, _ in points], means, color=MUTED, marker=marker, ms=5, lw=1.2, label=short_name(task))
    if name == "handover":
        axes.plot(ladder, [1 - 1 / each for each in ladder], color=SERIES[1], ls=":", lw=1.4, label="drawn by lot")
    axes.set_xscale("log", base=2)
    axes.set_xticks(ladder, [str(each) for each in ladder])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("K")


def curve(rows: Sequence[MechanismRow], candidates: int, name: str) -> tuple[list[int], list, list, list]:
    """Return steps, and lowest, mean and highest value of the seeds at each."""
    found = defaultdict(list)
    for row in rows:
        value = getattr(row, name)
        if row.candidates == candidates and value is not None:
            found[row.step].append(value)
    steps = sorted(found)
    return (
        steps,
        [min(found[step]) for step in steps],
        [float(np.mean(found[step])) for step in steps],
        [max(found[step]) for step in steps],
    )


def values(rows: Sequence[MechanismRow], candidates: int, name: str, step: int) -> list[float]:
    own = [getattr(row, name) for row in rows if row.candidates == candidates and row.step == step]
    return [value for value in own if value is not None]
