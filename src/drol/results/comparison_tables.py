"""Format a comparison as tables of cells, for the command and the page."""

import math
from collections.abc import Sequence

import numpy as np

from drol.results.compare import Comparison
from drol.results.groups import Group
from drol.results.offline_comparison import Estimate, OfflineComparison
from drol.results.statistical_tests import Interval, mean_and_deviation
from drol.results.verdicts import p_words

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # titles, cells of each line
WHICH = {"last": "last evaluation", "best": "best evaluation", "last3": "mean of the last three evaluations"}

TASK_TITLES = (
    "group", "seeds", "episodes", "updates", "mean", "deviation", "95% interval", "difference", "95% interval",
    "p (Holm)",
)  # fmt: skip
OVERALL_TITLES = ("group", "tasks", "runs", "mean", "IQM", "95% interval", "P(better)", "95% interval")


def heading(comparison: Comparison, task: str) -> str:
    """Return the heading of a task's table: the task, the name of the score, the evaluations."""
    name = next(group.score_name for group in comparison.groups if group.task == task)
    return f"{task}: {name}, {WHICH[comparison.at]}"


def task_table(comparison: Comparison, task: str) -> Table:
    """Return a line for each group on a task: its score, and its difference from the baseline."""
    differences = {each.group.label: each for each in comparison.differences if each.group.task == task}
    lines = []
    for group in (group for group in comparison.groups if group.task == task):
        mean, deviation = mean_and_deviation(group.scores)
        cells = (group.label, str(len(group.scores)), episodes_of(group), steps_of(group), f"{mean:.1f}")
        cells += ("-" if math.isnan(deviation) else f"{deviation:.1f}", interval_words(group.interval))
        found = differences.get(group.label)
        planned = comparison.difference is not None
        if found:
            needed = ("-" if found.seeds_needed is None else f"{found.seeds_needed:,}",) if planned else ()
            cells += (f"{found.value:+.1f}", interval_words(found.interval, "+.1f"), p_words(found.p), *needed)
            cells += (found.words,)
        else:
            cells += ("", "", "", *([""] * planned), "baseline" if group.label == comparison.baseline else "")
        lines.append(cells)
    asked = [] if comparison.difference is None else [f"seeds for {comparison.difference:g}"]
    return (*TASK_TITLES, *asked, "verdict"), lines


def overall_table(comparison: Comparison) -> Table:
    """Return a line for each label: the summary of its runs over all tasks."""
    lines = []
    for each in comparison.overall:
        runs = sum(len(scores) for scores in each.scores.values())
        mean = np.mean([scores.mean() for scores in each.scores.values()])
        center = "-" if each.interquartile_mean is None else f"{each.interquartile_mean:.1f}"
        cells = (each.label, str(len(each.scores)), str(runs), f"{mean:.1f}", center)
        chance = "" if each.improvement is None else f"{each.improvement:.2f}"
        spread = interval_words(each.improvement_interval, ".2f") if chance else ""
        lines.append((*cells, interval_words(each.interval), chance, spread))
    return OVERALL_TITLES, lines


def text_of(table: Table) -> str:
    """Format a table as text: the first and last columns left-aligned, the others right-aligned."""
    titles, lines = table
    rows = [titles, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(titles) - 1
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index in (0, last) else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def print_comparison(comparison: Comparison) -> str:
    """Return all tables and notes of a comparison as text."""
    parts = [f"{heading(comparison, task)}\n{text_of(task_table(comparison, task))}" for task in comparison.tasks]
    if comparison.overall:
        against = f"P(better) is the probability that a run is better than a run of {comparison.baseline}"
        parts.append(f"all tasks; {against}\n{text_of(overall_table(comparison))}")
    if comparison.notes:
        parts.append("\n".join(f"note: {line}" for line in comparison.notes))
    return "\n\n".join(parts)


def print_offline(comparison: OfflineComparison) -> str:
    """Format the comparison of runs without a simulator: a line for each group, then warnings and notes."""
    lines = [
        (
            group.label,
            str(group.seeds),
            range_words(group.steps),
            *estimate_words(group.error, ".3f"),
            *estimate_words(group.outside, ".0%"),
            *estimate_words(group.value, ".1f"),
            "leaves the data" if group.warning else "",
        )
        for group in comparison.groups
    ]
    value = f"value ({comparison.discount:g})"
    interval = "95% interval"
    titles = ("group", "seeds", "updates", "error", interval, "outside", interval, value, interval, "")
    parts = [f"{comparison.task}: newest policies, evaluated on data\n{text_of((titles, lines))}"]
    warnings = [f"warning: {group.warning}" for group in comparison.groups if group.warning]
    parts.append("\n".join([*warnings, *(f"note: {line}" for line in comparison.notes)]))
    return "\n\n".join(parts)


def estimate_words(estimate: Estimate | None, form: str) -> tuple[str, str]:
    """Return a mean and its interval as two cells."""
    return ("-", "-") if estimate is None else (f"{estimate.mean:{form}}", interval_words(estimate.interval, form))


def interval_words(interval: Interval | None, form: str = ".1f") -> str:
    return "-" if interval is None else f"{interval.low:{form}} to {interval.high:{form}}"


def episodes_of(group: Group) -> str:
    """Return the number of evaluated episodes of each seed."""
    counts = [sum(row.episodes for row in rows) for rows in group.chosen.values()]
    return range_words(counts)


def steps_of(group: Group) -> str:
    return range_words(group.steps)


def range_words(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
