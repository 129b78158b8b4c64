"""Figure 4: the score against K from the existing runs, with marks on the default and the best K."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from drol.errors import InputError
from drol.reports.figure_style import INK, MISSED, MUTED, REACHED, SERIES, styled
from drol.results.merge import consistent
from drol.results.result import Result
from drol_reproduction.experiments import DEFAULT_K, short_name
from drol_reproduction.published import sensitivity
from drol_reproduction.scores import rows_by_candidates, seed_scores

HANDS, HAND_DATASETS = ("pen", "door", "hammer", "relocate"), 3  # tasks of Adroit, and the number of datasets of each
Curve = Mapping[int, Sequence[float]]  # K -> scores of the seeds
Curves = dict[str, dict[int, dict[int, list[float]]]]  # task -> best of N -> K -> scores of the seeds


def sensitivity_curves(results: Iterable[Result], protocol: str = "fql") -> Curves:
    """Return the scores of DROL by panel, N (best of N actions at test time) and K.

    The protocol chooses the score for N = 1; for other N the score is that of the last policy.

    A panel is a task or, for Adroit, the mean of a hand task's three datasets, as in the paper.
    """
    results = consistent(results)
    found: dict[tuple[str, int, int], list[dict[int, float]]] = {}  # panel, best of N, K -> scores of each task
    for task in sorted({row.task for row in results if row.method == "drol"}):
        for candidates, rows in sorted(rows_by_candidates(results, task).items()):
            for best_of in sorted({row.best_of for row in rows}):
                own = [row for row in rows if row.best_of == best_of]
                scores = seed_scores(own, protocol) if best_of == 1 else last_extra_scores(own)
                if scores:
                    found.setdefault((panel_of(task), best_of, candidates), []).append(scores)
    curves: Curves = {}
    for (panel, best_of, candidates), tasks in found.items():
        shared = sorted(set.intersection(*({*each} for each in tasks)))
        if shared and (panel not in HANDS or len(tasks) == HAND_DATASETS):
            means = [float(np.mean([each[seed] for each in tasks])) for seed in shared]
            curves.setdefault(panel, {}).setdefault(best_of, {})[candidates] = means
    return curves


def panel_of(task: str) -> str:
    """Return the panel of the figure that a task belongs to."""
    hand = task.split("-")[0]
    return hand if task.endswith("-v1") and hand in HANDS else task


def last_extra_scores(rows: Sequence[Result]) -> dict[int, float]:
    """Return the score of each seed's last policy from `drol evaluate`."""
    extra = [row for row in rows if row.evaluation == "extra" and row.step == row.steps]
    return {row.seed: row.score for row in extra}


@styled
def sensitivity_figure(results: Iterable[Result], protocol: str = "fql") -> Figure:
    """Draw a panel for each task: one pass, best of N if it was evaluated, and the published curve if there is one."""
    curves = {task: own for task, own in sensitivity_curves(results, protocol).items() if len(own.get(1, {})) > 1}
    if not curves:
        raise InputError("no task has finished runs of two or more K; `drol paper run fig4` makes them")
    columns = min(4, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(max(3.0 * columns, 6.4), 2.5 * rows + 0.5), layout="constrained")
    all_axes = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (task, own) in zip(all_axes, curves.items(), strict=False):
        draw_panel(axes, task, own)
    for axes in list(all_axes)[len(curves) :]:
        axes.set_visible(False)
    handles = [
        Line2D([], [], color=REACHED, marker="o", label="one pass (mean, and range of the seeds)"),
        Line2D([], [], color=SERIES[2], marker="s", ls="--", label="best of 4"),
        Line2D([], [], color=SERIES[4], marker="^", ls="--", label="best of 16"),
        Line2D([], [], color=MISSED, marker="o", ms=10, mfc="none", lw=0, label="best K of one pass"),
        Line2D([], [], color=MUTED, ls=":", label=f"the default, K = {DEFAULT_K}"),
        Line2D([], [], color=INK, alpha=0.35, label="published (read off its figure)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def draw_panel(axes: Any, task: str, own: Mapping[int, Curve]) -> None:
    published = sensitivity().get(task)
    if published:
        axes.plot([*published], [*published.values()], color=INK, alpha=0.35, lw=1.4)
    looks = {1: (REACHED, "o", "-"), 4: (SERIES[2], "s", "--"), 16: (SERIES[4], "^", "--")}
    for best_of, curve in own.items():
        color, marker, line = looks.get(best_of, (SERIES[5], "d", "--"))
        candidates = sorted(curve)
        means = [float(np.mean(curve[each])) for each in candidates]
        axes.plot(candidates, means, color=color, marker=marker, ls=line, ms=4, lw=1.8 if best_of == 1 else 1.1)
        if best_of == 1:
            low, high = [min(curve[each]) for each in candidates], [max(curve[each]) for each in candidates]
            axes.fill_between(candidates, low, high, color=color, alpha=0.15, lw=0)
            best = int(np.argmax(means))
            axes.plot(candidates[best], means[best], "o", ms=11, mfc="none", mec=MISSED, mew=1.6)
    axes.axvline(DEFAULT_K, color=MUTED, ls=":", lw=1)
    seeds = sorted({len(scores) for scores in own[1].values()})
    counted = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seed{'s' * (seeds[0] > 1)}"
    axes.set_title(f"{short_name(task)} ({counted})", fontsize=9)
    ticks = sorted({each for curve in own.values() for each in curve} | {*(published or ())})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(each) for each in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    highest = max(score for curve in own.values() for scores in curve.values() for score in scores)
    axes.set(xlabel="K", ylim=(-4, 1.09 * max(100, highest, *(published or {}).values())))
