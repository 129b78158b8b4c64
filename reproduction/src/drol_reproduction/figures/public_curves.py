"""Draw our learning curves over public ones of the same task; label other training protocols."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from drol.errors import InputError
from drol.planning.planned_run import CANDIDATES
from drol.reports.figure_style import styled, thousands
from drol.results.merge import consistent
from drol.results.result import Result
from drol_reproduction.experiments import short_name
from drol_reproduction.protocol import protocol_differences, words
from drol_reproduction.published.curves import Point, Source, mean_curve, public_curves, tasks_with_curves

# Okabe and Ito's colours, which are safe for colour-blind readers; a method has the same colour in all panels.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#8A8A8A")
FIRST = ("fql", "drol", "ifql", "iql", "driftql", "bfn", "mfql")  # methods with a fixed colour
DASHES = ("-", (0, (1, 1)), (0, (3, 1, 1, 1)))  # line styles for the settings of one method, in order
TICKS = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)


class OwnCurve(NamedTuple):
    """The runs of one method with the same settings on one task."""

    method: str
    label: str
    paper: bool  # whether it was trained as in the paper
    seeds: dict[int, dict[int, float]]  # seed -> updates -> score

    @property
    def mean(self) -> dict[int, float]:
        """The mean score at each step, over the seeds that were evaluated there."""
        steps = sorted({step for own in self.seeds.values() for step in own})
        return {step: float(np.mean([own[step] for own in self.seeds.values() if step in own])) for step in steps}


class Panel(NamedTuple):
    """The curves of one task."""

    task: str
    own: list[OwnCurve]
    public: dict[Source, list[Point]]
    alike: bool  # whether at least one of our runs was trained as in the paper
    hidden: list[Source]  # public curves of another protocol, which are not drawn


def own_curves(results: Iterable[Result], task: str) -> list[OwnCurve]:
    """Return the curves of our runs on a task: one for each method and its settings."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for row in results:
        if row.task == task and row.evaluation == "training" and row.step > 0:
            groups.setdefault(row.group, []).append(row)
    curves = []
    for rows in groups.values():
        seeds: dict[int, dict[int, float]] = {}
        for row in rows:
            seeds.setdefault(row.seed, {})[row.step] = row.score
        first = rows[0]
        name = f"{first.method} K={first.setting(CANDIDATES)}" if first.method == "drol" else first.method
        differences = protocol_differences(first)
        label = f"ours: {name} ({len(seeds)} seed{'s' * (len(seeds) > 1)}), {words(differences)}"
        curves.append(OwnCurve(first.method, label, not differences, seeds))
    return sorted(curves, key=lambda curve: (not curve.paper, curve.method, len(curve.label), curve.label))


def make_panels(results: Iterable[Result], other_protocols: bool = False) -> list[Panel]:
    """Return a panel for each task with both our runs and public curves.

    Args:
        results: Results of our runs.
        other_protocols: Whether to include public curves whose protocol differs from our runs' protocol.
    """
    results = consistent(results)
    panels = []
    for task in dict.fromkeys(row.task for row in results):
        own, public = own_curves(results, task), public_curves(task)
        if own and public:
            alike = any(curve.paper for curve in own)
            drawn = {each: points for each, points in public.items() if other_protocols or (alike and each.identical)}
            panels.append(Panel(task, own, drawn, alike, [each for each in public if each not in drawn]))
    if not panels:
        raise InputError(f"no run is of a task with public curves, which are: {', '.join(tasks_with_curves())}")
    return panels


@styled
def curves_figure(panels: Sequence[Panel]) -> Figure:
    """Draw learning curves: ours as solid lines with their seeds, public ones dashed with hollow points."""
    methods = [curve.method for panel in panels for curve in panel.own]
    methods += [points[0].method.lower() for panel in panels for points in panel.public.values()]
    order = list(dict.fromkeys([*FIRST, *methods]))
    colours = {method: PALETTE[index % len(PALETTE)] for index, method in enumerate(order)}
    figure = Figure(figsize=(11, 4.4 * len(panels)), layout="constrained")
    for axes, panel in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        draw_panel(axes, panel, colours)
    return figure


def draw_panel(axes: Any, panel: Panel, colours: dict[str, str]) -> None:
    """Draw one task, with a legend beside the axes."""
    handles, drawn = [], dict.fromkeys(colours, 0)
    for curve in panel.own:
        look: dict[str, Any] = {"color": colours[curve.method], "ls": DASHES[drawn[curve.method] % len(DASHES)]}
        drawn[curve.method] += 1
        for own in curve.seeds.values() if len(curve.seeds) > 1 else ():
            axes.plot([*sorted(own)], [own[step] for step in sorted(own)], lw=0.6, alpha=0.5, **look)
        axes.plot([*curve.mean], [*curve.mean.values()], lw=2, marker=".", label=curve.label, **look)
        handles.append(Line2D([], [], lw=2, marker=".", label=wrapped(curve.label), **look))
    for source, points in panel.public.items():
        method = points[0].method.lower()
        look = {"color": colours[method], "ls": "--", "marker": "os^v"[drawn[method] % 4], "mfc": "white"}
        drawn[method] += 1
        label = public_label(source, panel.alike)
        draw_range(axes, points, colours[method])
        mean = {step: score for step, score in mean_curve(points).items() if step > 0}
        axes.plot([*mean], [*mean.values()], lw=1.2, ms=4, label=label, **look)
        handles.append(Line2D([], [], lw=1.2, ms=4, label=wrapped(label), **look))
    last = max([max(curve.mean) for curve in panel.own] + [points[-1].updates for points in panel.public.values()])
    axes.set(xscale="log", xlabel="updates", ylabel="success (%)", ylim=(0, 100), xlim=(8_000, max(1.1 * last, 20_000)))
    axes.xaxis.set_minor_locator(NullLocator())
    shown = [tick for tick in TICKS if tick <= 1.1 * last]
    axes.set_xticks(shown, [thousands(tick) for tick in shown])
    axes.set_title(short_name(panel.task), fontsize=10)
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7.5)


def draw_range(axes: Any, points: Sequence[Point], colour: str) -> None:
    """Shade the range from the lowest to the highest run, if single runs were published."""
    runs: dict[int, list[float]] = {}
    for point in points:
        if point.statistic == "run":
            runs.setdefault(point.updates, []).append(point.score)
    steps = sorted(runs)
    if steps:
        low, high = [min(runs[step]) for step in steps], [max(runs[step]) for step in steps]
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, lw=0)


def public_label(source: Source, alike: bool) -> str:
    """Return the legend of a public curve: its source, its number of runs, and whether it has our protocol."""
    if source.identical:
        protocol = "the paper's protocol" if alike else "OTHER PROTOCOL than ours: the paper's"
    else:
        protocol = f"OTHER PROTOCOL: {source.differs}"
    return f"public: {source.label} ({source.seeds} runs), {protocol}"


def wrapped(label: str) -> str:
    return textwrap.fill(label, 58, subsequent_indent="   ")


def curves_caption(panels: Sequence[Panel], results: Iterable[Result]) -> str:
    """Return the numbers of the figure, and the omitted curves with the reason."""
    lines = []
    for panel in panels:
        for curve in panel.own:
            lines.append(f"{short_name(panel.task)}, {curve.label}: {points_of(curve.mean)}")
        for source, points in panel.public.items():
            label = public_label(source, panel.alike)
            lines.append(f"{short_name(panel.task)}, {label}: {points_of(mean_curve(points))}")
            lines.append(f"  {source.protocol}; {source.repository}@{source.commit} {source.file}")
        if panel.hidden:
            names = "; ".join(each.label for each in panel.hidden)
            lines.append(f"{short_name(panel.task)}: trained otherwise, drawn with --other-protocols: {names}")
    without = sorted({row.task for row in results} - {*tasks_with_curves()})
    if without:
        have = ", ".join(map(short_name, tasks_with_curves()))
        lines.append(f"no public curve: {', '.join(map(short_name, without))}; there are some for: {have}")
    return "\n".join(lines)


def points_of(curve: dict[int, float]) -> str:
    return ", ".join(f"{thousands(step)} {score:.0f}" for step, score in curve.items())
