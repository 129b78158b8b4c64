"""Rows of runs as the lines of charts: learning curves with intervals, and every metric."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from drol.results.groups import Group, score_interval
from drol.results.statistical_tests import Interval
from drol.runs.records import MetricsRow

Values = Mapping[int, Mapping[int, float]]  # of a metric: seed -> step -> value
Chart = dict[str, Any]  # what `drol.lineChart` of charts.js takes
MEAN = -1  # the group of the mean where every seed has a line of its own
POINTS = 60_000  # of all lines of a page, about
FEWEST = 24  # of one line
SEED_LINES = 24  # lines of single seeds that are drawn beside means, at most


def plain_number(value: float | None) -> float | None:
    """Return a number with the digits that a page needs; None for one that is not finite, which JSON cannot hold."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def thinned(steps: Sequence[int], most: int) -> list[int]:
    """Return at most so many of some steps, evenly spread, the last one among them."""
    if len(steps) <= most:
        return list(steps)
    return [steps[index] for index in np.linspace(0, len(steps) - 1, most).round().astype(int)]


def seed_line(values: Mapping[int, float], steps: Sequence[int], label: str, group: int, **look: Any) -> dict[str, Any]:
    """Return the line of one seed; a step that it has no finite value of is a gap."""
    return {"group": group, "label": label, "x": list(steps), "y": [plain_number(values.get(s)) for s in steps], **look}


@np.errstate(over="ignore", invalid="ignore")  # a mean of huge values is a gap
def mean_line(
    values: Values, steps: Sequence[int], label: str, group: int, spread: Callable[[int], Interval | None]
) -> dict[str, Any]:
    """Return the mean over the seeds that have a finite value at each step, and what `spread` says of it."""
    means, lows, highs = [], [], []
    for step in steps:
        found = [own[step] for own in values.values() if step in own and math.isfinite(own[step])]
        interval = spread(step) if found else None
        means.append(plain_number(float(np.mean(found))) if found else None)
        lows.append(plain_number(interval.low) if interval else None)
        highs.append(plain_number(interval.high) if interval else None)
    line = {"group": group, "label": label, "x": list(steps), "y": means}
    return line | ({"low": lows, "high": highs} if any(low is not None for low in lows) else {})


def lines_of(
    values: Values,
    label: str,
    group: int,
    alone: bool,
    seeds: Sequence[int],
    spread: Callable[[int], Interval | None],
    most: int,
    thin: bool,
) -> list[dict[str, Any]]:
    """Return the lines of one group: of the only one on a page, each seed and the mean; else the mean, and thin seeds.

    Args:
        values: Of each seed and step.
        label: The name of the group.
        group: Its number in the legend.
        alone: Whether it is the only group, so that the legend has its seeds.
        seeds: All seeds of that legend.
        spread: The interval of the mean at a step.
        most: Points of a line.
        thin: Whether seeds are drawn beside the mean.
    """
    steps = thinned(sorted({step for own in values.values() for step in own}), most)
    if alone:
        lines = [seed_line(own, steps, f"seed {seed}", seeds.index(seed)) for seed, own in sorted(values.items())]
        if len(values) > 1:
            lines = [line | {"thin": True} for line in lines]
            lines.append(mean_line(values, steps, "mean", MEAN, spread))
        elif lines:
            lines = [lines[0] | {key: mean_line(values, steps, "", 0, spread).get(key) for key in ("low", "high")}]
        return [{key: value for key, value in line.items() if value is not None} for line in lines]
    several = [seed_line(own, steps, f"{label}, seed {seed}", group, thin=True) for seed, own in sorted(values.items())]
    return [*(several if thin and len(values) > 1 else []), mean_line(values, steps, label, group, spread)]


def legend_of(labels: Sequence[str], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return the legend: the groups or, of one group alone, its seeds and their mean."""
    if len(labels) != 1:
        return [{"label": label} for label in labels]
    if len(seeds) == 1:
        return [{"label": labels[0]}]
    return [*({"label": f"seed {seed}"} for seed in seeds), {"label": "mean", "colour": MEAN}]


def learning_charts(groups: Sequence[Group], labels: Sequence[str], seeds: Sequence[int]) -> list[Chart]:
    """Return a chart for each task: the score of its groups at every evaluation."""
    charts = []
    for task in dict.fromkeys(group.task for group in groups):
        own = [group for group in groups if group.task == task]
        lines = []
        for group in own:
            values: dict[int, dict[int, float]] = {}
            for row in group.rows:
                values.setdefault(row.seed, {})[row.step] = row.score

            def spread(step: int, group: Group = group) -> Interval | None:
                rows = [row for row in group.rows if row.step == step]
                return score_interval(rows, [row.score for row in rows])

            thin = sum(len(each.chosen) for each in own) <= SEED_LINES
            place = labels.index(group.label)
            lines += lines_of(values, group.label, place, len(labels) == 1, seeds, spread, POINTS, thin)
        name = own[0].score_name
        charts.append({"title": task, "words": name, "percent": "%" in name, "height": 280, "series": lines})
    return charts


def metric_values(rows: Iterable[MetricsRow]) -> dict[str, dict[int, dict[int, float]]]:
    """Return name -> seed -> step -> value of all metrics."""
    found: dict[str, dict[int, dict[int, float]]] = {}
    for row in rows:
        for name, value in row.values.items():
            found.setdefault(name, {}).setdefault(row.seed, {})[row.step] = value
    return found


def metric_charts(
    groups: Sequence[tuple[str, Mapping[str, Values]]],
    labels: Sequence[str],
    seeds: Sequence[int],
    titles: Mapping[str, str] | None = None,
) -> list[Chart]:
    """Return a chart for each metric that any group has: means over seeds, with the range of the seeds as a band.

    Args:
        groups: A label and the metrics of its runs, each.
        labels: All labels of the legend.
        seeds: The seeds of the legend, where there is one group.
        titles: The metrics to show and their titles; all, by their names, if None.
    """
    names = [*titles] if titles else sorted({name for _, values in groups for name in values}, key=metric_order)
    counts = [len(values.get(name, {})) for name in names for _, values in groups]
    most = max(FEWEST, POINTS // max(1, sum(counts)))
    thin = sum(len(values.get(names[0], {})) for _, values in groups) <= SEED_LINES if names else False
    charts = []
    for name in names:
        lines = []
        for label, values in groups:
            own = values.get(name, {})

            def spread(step: int, own: Values = own) -> Interval | None:
                found = [each[step] for each in own.values() if step in each and math.isfinite(each[step])]
                return Interval(min(found), max(found)) if len(found) > 1 else None

            if own:
                lines += lines_of(own, label, labels.index(label), len(labels) == 1, seeds, spread, most, thin)
        if lines:
            charts.append({"title": titles[name] if titles else name, "name": name, "series": lines})
    return charts


def metric_order(name: str) -> tuple[int, str]:
    """Put what updates log first, then diagnostics, then what validation data says."""
    return ("/" in name) + name.startswith("validation/"), name
