"""Group results by method, settings and task, and select the evaluations to compare."""

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drol.results import verdicts
from drol.results.result import Result
from drol.results.statistical_tests import Interval

AT = ("last", "best", "last3")


@dataclass(frozen=True)
class Group:
    """The seeds of one method with one choice of settings on one task.

    Attributes:
        task: The name of the task.
        label: The name of the method, with the settings that distinguish the method's groups on the task.
        rows: All evaluations.
        chosen: The selected evaluations of each seed.
    """

    task: str
    label: str
    rows: tuple[Result, ...]
    chosen: dict[int, tuple[Result, ...]]

    @property
    def score_name(self) -> str:
        return self.rows[0].score_name

    @functools.cached_property
    def scores(self) -> np.ndarray:
        """The score of each seed: the mean of its selected evaluations."""
        return np.asarray([np.mean([row.score for row in rows]) for rows in self.chosen.values()])

    @property
    def counted(self) -> list[Result]:
        """The selected evaluations of all seeds."""
        return [row for rows in self.chosen.values() for row in rows]

    @property
    def steps(self) -> list[int]:
        """The steps of the last selected evaluations of all seeds."""
        return sorted({rows[-1].step for rows in self.chosen.values()})

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The interval of the mean score; None if it cannot be estimated."""
        return score_interval(self.counted, self.scores)

    @functools.cached_property
    def successes_by_episode(self) -> dict[int, float]:
        """The success rate of each episode seed, over training seeds and evaluations."""
        found: dict[int, list[float]] = {}
        for row in self.counted:
            for number, outcome in enumerate(row.outcomes):
                found.setdefault(row.first_episode_seed + number, []).append(float(outcome))
        return {seed: float(np.mean(outcomes)) for seed, outcomes in found.items()}


def is_success(rows: Sequence[Result]) -> bool:
    """Return whether the scores are success rates in percent."""
    return all(row.score_name.startswith("success") for row in rows)


def count_successes(rows: Iterable[Result]) -> tuple[int, int]:
    """Return the numbers of successes and of episodes in evaluations."""
    outcomes = "".join(row.outcomes for row in rows)
    return outcomes.count("1"), len(outcomes)


def score_interval(rows: Sequence[Result], scores: Sequence[float] | np.ndarray) -> Interval | None:
    """Return the interval of a mean score over seeds, by the rule of `rules`."""
    return verdicts.score_interval(scores, count_successes(rows) if is_success(rows) else None)


def choose(rows: Sequence[Result], at: str) -> dict[int, tuple[Result, ...]]:
    """Select the evaluations of each seed.

    "last" selects the last one; "last3" the last three after the first update, as in the protocol of the FQL paper;
    "best" the one at the step with the highest mean over the seeds evaluated there.

    Args:
        rows: The evaluations of a group.
        at: One of `AT`.
    """
    by_seed: dict[int, list[Result]] = {}
    for row in sorted(rows, key=lambda row: (row.seed, row.step)):
        by_seed.setdefault(row.seed, []).append(row)
    if at == "last":
        return {seed: (own[-1],) for seed, own in by_seed.items()}
    if at == "last3":
        return {seed: tuple([row for row in own if row.step][-3:] or own) for seed, own in by_seed.items()}
    shared = set.intersection(*({row.step for row in own} for own in by_seed.values())) or {row.step for row in rows}
    means = {step: np.mean([row.score for row in rows if row.step == step]) for step in sorted(shared)}
    best = max(means, key=lambda step: means[step])
    return {seed: kept for seed, own in by_seed.items() if (kept := tuple(row for row in own if row.step == best))}


def make_groups(results: Iterable[Result], at: str = "last") -> list[Group]:
    """Group results by task, method, settings and number of drawn actions; keep their order."""
    found: dict[tuple[str, str, str, int], list[Result]] = {}
    for result in results:
        found.setdefault(result.group, []).append(result)
    labels = make_labels([rows[0] for rows in found.values()])
    return [Group(key[0], labels[key], tuple(rows), choose(rows, at)) for key, rows in found.items()]


def make_labels(firsts: Sequence[Result]) -> dict[tuple[str, str, str, int], str]:
    """Return a label for each group: its method, with the settings that differ among the method's groups on a task."""
    settings = {each.group: settings_of(each) for each in firsts}
    varying: dict[str, set[str]] = {each.method: set() for each in firsts}
    for one in firsts:
        for other in firsts:
            if (one.task, one.method) == (other.task, other.method):
                mine, theirs = settings[one.group], settings[other.group]
                varying[one.method] |= {name for name in mine | theirs if mine.get(name) != theirs.get(name)}
    labels = {}
    for each in firsts:
        own = settings[each.group]
        parts = [f"{name}={shown(own.get(name, default_of(each, name)))}" for name in sorted(varying[each.method])]
        labels[each.group] = " ".join([each.method, *parts])
    return labels


def settings_of(result: Result) -> dict[str, Any]:
    return json.loads(result.settings) | {"best_of": result.best_of}


def default_of(result: Result, name: str) -> Any:
    """Return the default of a setting; "default" if its algorithm is not registered."""
    try:
        return result.setting(name)
    except ValueError:  # in a results file: an unregistered algorithm, or the steps before online training
        return "default"


def shown(value: Any) -> str:
    """Format a setting briefly."""
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
