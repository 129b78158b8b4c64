"""Figure 3: candidate distance, centroid divergence and routed BC loss against K, and run times."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from drol.errors import InputError
from drol.experiments.bench.figure import draw_times
from drol.experiments.report.style import INK, MISSED, MUTED, REACHED, styled
from drol.experiments.results.merge import consistent
from drol.experiments.results.result import Result
from drol.paper.published import candidate_curves
from drol.paper.published_times import ACTION, TRAINING_STEP
from drol.paper.reproduce.experiments import short_name
from drol.paper.reproduce.scores import rows_by_candidates

FIGURES = ("candidate_distance", "routed_bc_loss", "candidate_divergence")
FLOOR = 1e-12  # what the logarithm of a divergence of 0 (K = 1) is shown as


def figures_by_candidates(results: Iterable[Result]) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Return the diagnostics at the end of training: task -> figure -> K -> value of each seed."""
    results = consistent(results)
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for task in dict.fromkeys(row.task for row in results if row.method == "drol"):
        own: dict[str, dict[int, list[float]]] = {name: {} for name in FIGURES}
        for candidates, rows in rows_by_candidates(results, task).items():
            for row in rows:
                if row.evaluation == "training" and row.step == row.steps and {*FIGURES} <= {*row.figures}:
                    for name in FIGURES:
                        own[name].setdefault(candidates, []).append(row.figures[name])
        if len(own[FIGURES[0]]) > 1:
            found[task] = own
    return found


@styled
def candidates_figure(results: Iterable[Result], bench: Mapping[str, Any] | None = None) -> Figure:
    """Draw the diagnostics of DROL at the end of training against K, for up to three tasks, and run times.

    Args:
        results: Results of runs with several K.
        bench: What `drol bench --json` wrote; without it there are no run times.
    """
    found = figures_by_candidates(results)
    if not found:
        raise InputError("no task has finished runs of two or more K; `drol paper run fig3` makes them")
    tasks = list(found)[:3]
    figure = Figure(figsize=(11, 6.2 if bench else 3.4), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1)) if bench else (figure, None)
    top, bottom = parts
    for axes, task in zip(top.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        draw_diagnostics(axes, task, found[task])
    handles = [
        Line2D([], [], color=REACHED, marker="o", label="candidate pairwise distance"),
        Line2D([], [], color=MISSED, marker="s", label="routed BC loss"),
        Line2D([], [], color=MUTED, ls=":", label="published (read off its figure), where the task is in it"),
    ]
    top.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8.5)
    if bench and bottom is not None:
        rows = {**bench["methods"], **bench.get("ladder", {})}
        if "drol" in bench["methods"]:
            rows["drol K=16"] = bench["methods"]["drol"]
        training_axes, action_axes = bottom.subplots(1, 2, width_ratios=(1.6, 1))
        steps = {name: row["update_milliseconds"] for name, row in rows.items()}
        draw_times(training_axes, steps, TRAINING_STEP, "one training step (filled: here, hollow: published)")
        actions = {name: row["action_milliseconds"] for name, row in rows.items() if "action_milliseconds" in row}
        draw_times(action_axes, actions, ACTION, "one action")
    return figure


def draw_diagnostics(axes: Any, task: str, own: Mapping[str, Mapping[int, list[float]]]) -> None:
    """Draw the distance on the left axis, the loss on the right one, the logarithm of the divergence in an inset."""
    other = axes.twinx()
    published = candidate_curves().get(task, {})
    for name, panel, color, marker in (
        ("candidate_distance", axes, REACHED, "o"),
        ("routed_bc_loss", other, MISSED, "s"),
    ):
        candidates = sorted(own[name])
        values = [own[name][each] for each in candidates]
        panel.plot(candidates, [np.mean(each) for each in values], color=color, marker=marker, ms=4, lw=1.8)
        low, high = [min(each) for each in values], [max(each) for each in values]
        panel.fill_between(candidates, low, high, color=color, alpha=0.15, lw=0)
        if name in published:
            panel.plot([*published[name]], [*published[name].values()], color=color, ls=":", lw=1.2)
        panel.tick_params(axis="y", colors=color)
        panel.set_ylim(bottom=0)
        panel.margins(y=0.25)
    other.grid(False)
    other.spines["right"].set_visible(True)
    inset = axes.inset_axes((0.52, 0.1, 0.42, 0.16))  # below the loss and right of where the distance rises
    candidates = sorted(own["candidate_divergence"])
    logs = [np.log10(max(np.mean(own["candidate_divergence"][each]), FLOOR)) for each in candidates]
    inset.plot(candidates, logs, color=INK, lw=1, marker=".", ms=4)
    inset.set_title("log10 divergence", fontsize=6.5)
    inset.tick_params(labelsize=6)
    for panel in (axes, inset):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(candidates, [str(each) for each in candidates])
    inset.set_xticks(candidates[:: max(1, len(candidates) - 1)], [str(candidates[0]), str(candidates[-1])])
    axes.set(xlabel="K")
    axes.set_title(short_name(task), fontsize=9)
