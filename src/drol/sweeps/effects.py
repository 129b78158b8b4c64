"""The effect of each hyperparameter: for each of its values, the mean of the metric over all runs with that value."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drol.planning.planned_run import shown
from drol.results.statistical_tests import Interval
from drol.results.verdicts import score_interval
from drol.sweeps.objective import metric_at, pooled_counts, success_counts
from drol.sweeps.status import SweepStatus
from drol.sweeps.sweep_runs import SweptRun

Counts = tuple[int, int] | None  # successes and episodes
MOST_LEVELS, BINS = 8, 4  # a numeric parameter with more values is divided into bins of about as many values each


@dataclass(frozen=True)
class Level:
    """The runs with one value of a parameter, or with the values of one bin."""

    label: str
    runs: int
    mean: float
    interval: Interval | None  # over runs, by `score_interval` as in all tables


@dataclass(frozen=True)
class Effect:
    """The effect of a parameter for a method on a task."""

    task: str
    method: str
    parameter: str
    steps: int  # after which the runs are compared
    levels: tuple[Level, ...]


def effects_of(status: SweepStatus) -> list[Effect]:
    """Return the effect of each parameter that has more than one value with results.

    Runs are compared after the same number of steps; for successive halving, after the steps of the first rung.
    """
    values = comparable_values(status)
    found = []
    for task, method in dict.fromkeys((each.run.task, each.run.method) for each in status.runs):
        own = [each for each in status.runs if (each.run.task, each.run.method) == (task, method)]
        own = [each for each in own if each.run.name in values]
        for parameter in status.sweep.parameters:
            steps = status.sweep.search.at[0] if status.sweep.search.at else own[0].run.steps if own else 0
            points = [
                (each.choice[parameter.name], values[each.run.name], counts_at(status, each, steps))
                for each in own
                if parameter.name in each.choice
            ]
            levels = make_levels(points)
            if len(levels) > 1:
                found.append(Effect(task, method, parameter.name, steps, levels))
    return found


def comparable_values(status: SweepStatus) -> dict[str, float]:
    """Return the metric of each run after the number of steps at which all runs are compared."""
    search = status.sweep.search

    def value_of(each: SweptRun) -> float | None:
        if not search.at or each.rung == 0:
            return each.value
        return metric_at(status.sweep.root / each.run.name, search.metric, search.at[0])

    found = {each.run.name: value_of(each) for each in status.runs}
    return {name: value for name, value in found.items() if value is not None}


def counts_at(status: SweepStatus, each: SweptRun, steps: int) -> Counts:
    """Return the successes and episodes of a run after some steps; None if the metric is not a success rate."""
    return success_counts(status.sweep.root / each.run.name, status.sweep.search.metric).get(steps)


def make_levels(points: Sequence[tuple[object, float, Counts]]) -> tuple[Level, ...]:
    """Return the levels of a parameter, given the value, the metric and the episode counts of each run."""
    groups: dict[object, list[tuple[float, Counts]]] = defaultdict(list)
    for value, number, counts in points:
        groups[value].append((number, counts))
    numbers = [value for value in groups if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(groups):
        groups = dict(sorted(groups.items(), key=lambda entry: float(str(entry[0]))))
        if len(groups) > MOST_LEVELS:
            return tuple(
                make_level(f"{shown(part[0])} to {shown(part[-1])}", [run for each in part for run in groups[each]])
                for part in (list(each) for each in np.array_split(np.asarray(list(groups), object), BINS))
            )
    return tuple(make_level(shown(value), own) for value, own in groups.items())


def make_level(label: str, runs: Sequence[tuple[float, Counts]]) -> Level:
    values = [value for value, _ in runs]
    interval = score_interval(values, pooled_counts(counts for _, counts in runs))
    return Level(label, len(values), float(np.mean(values)), interval)
