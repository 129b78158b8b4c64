"""The effect of each hyperparameter: the mean of the metric over all runs with a value, whatever the others were."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drol.experiments.compare.statistics import Interval, bootstrap_mean_interval
from drol.paper.planned import shown
from drol.sweeps.metrics import metric_at
from drol.sweeps.runs import SweptRun
from drol.sweeps.status import SweepStatus

MOST_LEVELS, BINS = 8, 4  # numbers that have more values are put into bins with about as many runs in each


@dataclass(frozen=True)
class Level:
    """The runs with one value of a parameter, or with values of a bin."""

    label: str
    runs: int
    mean: float
    interval: Interval | None  # None: one run


@dataclass(frozen=True)
class Effect:
    """What a parameter does for a method on a task."""

    task: str
    method: str
    parameter: str
    steps: int  # after which all its runs are compared
    levels: tuple[Level, ...]


def effects_of(status: SweepStatus) -> list[Effect]:
    """Return the effect of each parameter that has more than one value with results.

    Runs are compared after the same number of steps: of successive halving, after the first of them.
    """
    values = comparable_values(status)
    found = []
    for task, method in dict.fromkeys((each.run.task, each.run.method) for each in status.runs):
        own = [each for each in status.runs if (each.run.task, each.run.method) == (task, method)]
        own = [each for each in own if each.run.name in values]
        for parameter in status.sweep.parameters:
            pairs = [
                (each.choice[parameter.name], values[each.run.name]) for each in own if parameter.name in each.choice
            ]
            levels = make_levels(pairs)
            if len(levels) > 1:
                steps = status.sweep.search.at[0] if status.sweep.search.at else own[0].run.steps
                found.append(Effect(task, method, parameter.name, steps, levels))
    return found


def comparable_values(status: SweepStatus) -> dict[str, float]:
    """Return the metric of runs after the steps that all of them are compared at."""
    search = status.sweep.search

    def value_of(each: SweptRun) -> float | None:
        if not search.at or each.rung == 0:
            return each.value
        return metric_at(status.sweep.root / each.run.name, search.metric, search.at[0])

    found = {each.run.name: value_of(each) for each in status.runs}
    return {name: value for name, value in found.items() if value is not None}


def make_levels(pairs: Sequence[tuple[object, float]]) -> tuple[Level, ...]:
    """Return the levels of a parameter from its values and the metric of their runs."""
    groups: dict[object, list[float]] = defaultdict(list)
    for value, number in pairs:
        groups[value].append(number)
    numbers = [value for value in groups if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(groups):
        groups = dict(sorted(groups.items(), key=lambda entry: float(str(entry[0]))))
        if len(groups) > MOST_LEVELS:
            return tuple(
                make_level(
                    f"{shown(part[0])} to {shown(part[-1])}", [number for each in part for number in groups[each]]
                )
                for part in (list(each) for each in np.array_split(np.asarray(list(groups), object), BINS))
            )
    return tuple(make_level(shown(value), own) for value, own in groups.items())


def make_level(label: str, values: Sequence[float]) -> Level:
    interval = bootstrap_mean_interval(values) if len(values) > 1 else None
    return Level(label, len(values), float(np.mean(values)), interval)
