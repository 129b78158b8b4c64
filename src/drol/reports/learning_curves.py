"""Convert rows of runs to chart lines: learning curves with intervals, and every metric."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from drol.results.groups import Group, score_interval
from drol.results.statistical_tests import Interval
from drol.runs.records import MetricsRow

Values = Mapping[int, Mapping[int, float]]  # a metric: seed -> step -> value
Chart = dict[str, Any]  # the argument of `drol.lineChart` in charts.js
MEAN = -1  # the group of the mean if every seed has a separate line
POINTS = 60_000  # approximate limit for all lines of a page
FEWEST = 24  # least points of one line
SEED_LINES = 24  # most lines of single seeds beside means


def plain_number(value: float | None) -> float | None:
    """Round a number for a page; return None if it is not finite, because JSON has no such numbers."""
    return float(f"{value:.5g}") if value is not None and math.isfinite(value) else None


def thinned(steps: Sequence[int], most: int) -> list[int]:
    """Return at most `most` of the steps, evenly spread, including the last one."""
    if len(steps) <= most:
        return list(steps)
    return [steps[index] for index in np.linspace(0, len(steps) - 1, most).round().astype(int)]


def seed_line(values: Mapping[int, float], steps: Sequence[int], label: str, group: int, **look: Any) -> dict[str, Any]:
    """Return the line of one seed; steps without a finite value are gaps."""
    return {"group": group, "label": label, "x": list(steps), "y": [plain_number(values.get(s)) for s in steps], **look}


@np.errstate(over="ignore", invalid="ignore")  # a mean of huge values is a gap
def mean_line(
    values: Values, steps: Sequence[int], label: str, group: int, spread: Callable[[int], Interval | None]
) -> dict[str, Any]:
    """Return the mean over seeds with a finite value at each step, with the interval of `spread`."""
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
    """Return the lines of one group: seeds and mean if it is the only group, otherwise the mean and thin seeds.

    Args:
        values: The value of each seed and step.
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
    """Return the legend: the groups; for a single group, its seeds and their mean."""
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
        groups: The label and the metrics of each group.
        labels: All labels of the legend.
        seeds: The seeds of the legend for a single group.
        titles: The metrics to show and their titles; all metrics by name if None.
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
    """Return a sort key: metrics of updates first, then diagnostics, then validation."""
    return ("/" in name) + name.startswith("validation/"), name
