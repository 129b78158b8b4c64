"""The page of a sweep: the table, learning curves of the best choices, the effect of each hyperparameter."""

import html
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drol.reports.figure_style import SERIES, styled, thousands
from drol.reports.html.tables import table
from drol.reports.html.template import Section, page_html
from drol.results.comparison_tables import interval_words
from drol.results.verdicts import score_interval
from drol.storage import write_whole
from drol.sweeps.effects import Effect, effects_of
from drol.sweeps.objective import metric_curve, pooled_counts, success_counts
from drol.sweeps.status import SweepStatus, best_table, summary_of

CURVES = len(SERIES)  # choices whose curves are drawn for each task
COLUMNS = 3
TABLE_CAPTION = (
    "Choices that trained longest first, of these the best. The interval is the 95% interval of the mean over "
    "seeds: Student's and, for success rates, at least as wide as Wilson's over all episodes."
)
CURVES_CAPTION = "The mean over runs of the best choices of each task; the band is its 95% interval, as in the table."
EFFECTS_CAPTION = (
    "The mean over all runs with a value, whatever their other values and seeds, with its 95% interval over runs. Many "
    "numbers are put into bins with about as many of them in each. Runs are compared after the same number of "
    "updates: of successive halving, after the first steps at which some were dropped."
)


def write_sweep_page(status: SweepStatus, path: Path | str) -> Path:
    """Write a sweep as one page that needs no other file.

    Args:
        status: What `sweep_status` returned.
        path: The file.
    """
    sweep, effects = status.sweep, effects_of(status)
    failed = [(each.run.name, each.failure) for each in status.those("failed")]
    tasks = f"{len(sweep.task_names)} task{'s' if len(sweep.task_names) > 1 else ''}"
    lead = f"<p>{html.escape(summary_of(status))}; {', '.join(sweep.methods)} on {tasks}, preset {sweep.preset}.</p>"
    sections = [Section("Choices", TABLE_CAPTION, content=table(*best_table(status)))]
    if status.best():
        sections.append(Section("Learning", CURVES_CAPTION, {"learning": learning_figure(status)}))
    if effects:
        figure = {"effects": effects_figure(effects, sweep.search.metric)}
        sections.append(
            Section("Hyperparameters", EFFECTS_CAPTION, figure, effects_table(effects, sweep.search.metric))
        )
    if failed:
        sections.append(
            Section("Failed", "Why, by the last lines of their logs.", content=table(("run", "reason"), failed))
        )
    foot = "<p>Made by <code>drol sweep status --page</code>; docs/sweeps.md says what it shows.</p>"
    write_whole(Path(path), page_html(f"sweep {sweep.name}", lead, sections, foot))
    return Path(path)


def effects_table(effects: Sequence[Effect], metric: str) -> str:
    titles = ("task", "method", "parameter", "value", "runs", "updates", metric, "95% interval")
    lines = [
        (each.task, each.method, each.parameter, level.label, level.runs, f"{each.steps:,}", f"{level.mean:.4g}",
         interval_words(level.interval, ".4g"))
        for each in effects
        for level in each.levels
    ]  # fmt: skip
    return table(titles, lines)


def panels(count: int, height: float) -> tuple[Figure, list]:
    """Return a figure with some panels in rows."""
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(6.4, 3.4 * columns), height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for each in axes[count:]:
        each.remove()
    return figure, axes[:count]


@styled
def learning_figure(status: SweepStatus) -> Figure:
    """Draw the metric against updates for the best choices of each task."""
    best = status.best()
    tasks = list(dict.fromkeys(each.key[0] for each in best))
    figure, axes = panels(len(tasks), 3.4)
    for panel, task in zip(axes, tasks, strict=True):
        for number, each in enumerate([each for each in best if each.key[0] == task][:CURVES]):
            points: dict[int, list[float]] = defaultdict(list)
            counts: dict[int, list[tuple[int, int] | None]] = defaultdict(list)
            for run in (run.run for run in status.runs if run.key == each.key):
                folder, metric = status.sweep.root / run.name, status.sweep.search.metric
                successes = success_counts(folder, metric)
                for step, values in metric_curve(folder, metric).items():
                    points[step].append(float(np.mean(list(values.values()))))
                    counts[step].append(successes.get(step))
            steps = sorted(points)
            panel.plot(
                steps,
                [np.mean(points[step]) for step in steps],
                color=SERIES[number],
                lw=1.8,
                marker="o",
                ms=3,
                label=each.words,
            )
            known = {step: score_interval(points[step], pooled_counts(counts[step])) for step in steps}
            bands = [(step, *interval) for step, interval in known.items() if interval]
            if bands:
                panel.fill_between(*zip(*bands, strict=True), color=SERIES[number], alpha=0.13, lw=0)
        panel.set(xlabel="updates", ylabel=status.sweep.search.metric)
        panel.set_title(task, fontsize=8)
        panel.xaxis.set_major_formatter(thousands)
        panel.legend(fontsize=7)
    return figure


@styled
def effects_figure(effects: Sequence[Effect], metric: str) -> Figure:
    """Draw the mean of the metric for each value of each parameter, with its interval."""
    figure, axes = panels(len(effects), 2.4)
    for panel, each in zip(axes, effects, strict=True):
        for place, level in enumerate(each.levels):
            if level.interval:
                panel.plot([place, place], level.interval, color=SERIES[0], lw=6, alpha=0.35)
            panel.plot([place], [level.mean], "o", color=SERIES[0], ms=5)
        panel.set_xticks(range(len(each.levels)), [level.label for level in each.levels], fontsize=7)
        panel.set(xlabel=each.parameter, ylabel=metric, xlim=(-0.5, len(each.levels) - 0.5))
        panel.set_title(f"{each.method} on {each.task}", fontsize=7)
    return figure
