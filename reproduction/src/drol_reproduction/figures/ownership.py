"""Draw the mechanism: ownership against the lag, the events of a handover, spread and regimes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from drol.errors import InputError
from drol.reports.figure_style import INK, MUTED, SERIES, styled
from drol_reproduction.mechanism import COLLAPSED, MechanismRow
from drol_reproduction.mechanism_verdicts import EVENTS_LAG, OWNERS_LAG, group_name, grouped, label_of, last_lags

REGIMES = (("stable", 0.9), ("handed_over", 0.5), ("collapsed", 0.2))  # in order from left to right, with opacity


@styled
def ownership_figure(rows: Sequence[MechanismRow]) -> Figure:
    """Draw six panels for each task and size of networks; thin lines and dots are seeds, thick lines are means."""
    groups = grouped(rows)
    if not groups:
        raise InputError("no rows to draw; compute them with `drol paper mechanism`")
    labels = list(dict.fromkeys(label_of(row) for own in groups.values() for row in own))
    colours = {label: SERIES[index % len(SERIES)] for index, label in enumerate(labels)}
    figure = Figure(figsize=(11.4, 5.6 * len(groups) + 0.5), layout="constrained")
    parts = figure.subfigures(len(groups), 1, squeeze=False)[:, 0]
    for part, (group, own) in zip(parts, groups.items(), strict=True):
        part.suptitle(group_name(group), fontsize=10)
        axes = part.subplots(2, 3)
        draw_lags(axes[0, 0], own, colours, "changed", "data actions with another owner")
        draw_lags(axes[0, 1], own, colours, "latent_distance", "distance of old and new owner / random pair")
        draw_rose(axes[0, 2], own, colours)
        draw_nearest(axes[1, 0], own, colours)
        draw_spread(axes[1, 1], own, colours)
        draw_regimes(axes[1, 2], own, colours)
        axes[0, 0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes[0, 0].set_ylim(0, 1.02)
        axes[0, 1].axhline(1, color=MUTED, ls=":", lw=1)
        axes[0, 1].set_ylim(bottom=0)
    handles = [figure_line(colours[label], label) for label in labels]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(labels), 5), fontsize=8.5)
    return figure


def figure_line(colour: Any, label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, lw=2, label=label)


def by_label(rows: Sequence[MechanismRow]) -> dict[str, list[MechanismRow]]:
    found = defaultdict(list)
    for row in rows:
        found[label_of(row)].append(row)
    return found


def draw_lags(
    axes: Any, rows: Sequence[MechanismRow], colours: dict, name: str, title: str, style: str = "-", dots: bool = True
) -> None:
    """Draw a number against the lag: a thin line for each seed and a thick one for their mean."""
    for label, own in by_label(rows).items():
        lines = defaultdict(list)
        for row in own:
            if getattr(row, name) is not None:
                lines[row.run].append((row.lag, getattr(row, name)))
        values = defaultdict(list)
        for line in lines.values():
            if len(lines) > 1:
                axes.plot(*zip(*sorted(line), strict=True), color=colours[label], lw=0.7, alpha=0.45, ls=style)
            for lag, value in line:
                values[lag].append(value)
        means = [(lag, np.mean(values[lag])) for lag in sorted(values)]
        if means:
            marker = {"marker": "o", "ms": 3.2} if dots else {}
            axes.plot(*zip(*means, strict=True), color=colours[label], lw=1.8, ls=style, **marker)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("lag in updates")
    axes.set_title(title, fontsize=9)


def draw_rose(axes: Any, rows: Sequence[MechanismRow], colours: dict) -> None:
    """Draw the share of old owners that rose in Q, where the owner changed and where it was kept."""
    kinds = (("rose_changed", "owner\nchanged"), ("rose_kept", "owner\nkept"), ("rose_other", "another\nlatent"))
    for label, own in by_label(rows).items():
        seeds = [[getattr(row, name) for name, _ in kinds] for row in own if row.lag == EVENTS_LAG]
        known = np.asarray([[np.nan if value is None else value for value in seed] for seed in seeds])
        if not len(known):
            continue
        for seed in known if len(known) > 1 else ():
            axes.plot(range(3), seed, color=colours[label], lw=0.7, alpha=0.45)
        means = [column[~np.isnan(column)].mean() if (~np.isnan(column)).any() else np.nan for column in known.T]
        axes.plot(range(3), means, "o-", color=colours[label], lw=1.8, ms=4.5)
    axes.axhline(0.5, color=MUTED, ls=":", lw=1)
    axes.set_xticks(range(3), [words for _, words in kinds])
    axes.set_xlim(-0.3, 2.3)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_title(f"rose in Q after {EVENTS_LAG:,} updates", fontsize=9)


def draw_nearest(axes: Any, rows: Sequence[MechanismRow], colours: dict) -> None:
    """Draw the distance from data to the nearest candidate, and the same if no owner had changed (dashed)."""
    title = "data to nearest candidate; dashed: without handover"
    draw_lags(axes, rows, colours, "nearest_after", title)
    draw_lags(axes, rows, colours, "nearest_if_kept", title, "--", dots=False)
    axes.set_ylim(bottom=0)


def draw_spread(axes: Any, rows: Sequence[MechanismRow], colours: dict) -> None:
    """Draw the spread of 64 draws as a share of the data's spread, one dot per seed, and the limit of collapse."""
    labels = by_label(last_lags(rows))
    for place, (label, own) in enumerate(labels.items()):
        values = [row.spread for row in own]
        axes.barh(place, np.mean(values), color=colours[label], alpha=0.35, height=0.6)
        axes.plot(values, [place] * len(values), "o", color=colours[label], ms=4.5)
    axes.axvline(COLLAPSED, color=INK, ls=":", lw=1.2)
    axes.annotate("collapse", (COLLAPSED, -0.45), xytext=(3, 0), textcoords="offset points", fontsize=8, color=INK)
    axes.axvline(1, color=MUTED, ls=":", lw=1)
    axes.set_yticks(range(len(labels)), [])
    axes.set_ylim(len(labels) - 0.5, -0.6)
    axes.set_title("spread of 64 draws / spread of the data", fontsize=9)


def draw_regimes(axes: Any, rows: Sequence[MechanismRow], colours: dict) -> None:
    """Draw the share of states in each regime, as a mean over seeds."""
    labels = by_label([row for row in rows if row.lag == OWNERS_LAG])
    for place, (label, own) in enumerate(labels.items()):
        left = 0.0
        for name, opacity in REGIMES:
            share = float(np.mean([getattr(row, name) for row in own]))
            axes.barh(place, share, left=left, color=colours[label], alpha=opacity, height=0.6)
            if share > 0.08:
                axes.text(left + share / 2, place, f"{share:.0%}", ha="center", va="center", fontsize=8, color=INK)
            left += share
    axes.set_yticks(range(len(labels)), [])
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_title(f"stable, handed over, collapsed after {OWNERS_LAG:,} updates", fontsize=9)
