"""Groups: the results of one method with one choice of settings on one task, and which of them count."""

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
        label: The name of the method, and what tells it from other groups of that method on the same task.
        rows: All evaluations.
        chosen: The evaluations of each seed that count.
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
        """The score of each seed: the mean of the evaluations that count."""
        return np.asarray([np.mean([row.score for row in rows]) for rows in self.chosen.values()])

    @property
    def counted(self) -> list[Result]:
        """The evaluations of all seeds that count."""
        return [row for rows in self.chosen.values() for row in rows]

    @property
    def steps(self) -> list[int]:
        """The steps after which the last evaluation that counts was made, of all seeds."""
        return sorted({rows[-1].step for rows in self.chosen.values()})

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The interval of the mean score; None where nothing says how wide it is."""
        return score_interval(self.counted, self.scores)

    @functools.cached_property
    def successes_by_episode(self) -> dict[int, float]:
        """The share of successes for each seed of an episode, over training seeds and evaluations."""
        found: dict[int, list[float]] = {}
        for row in self.counted:
            for number, outcome in enumerate(row.outcomes):
                found.setdefault(row.first_episode_seed + number, []).append(float(outcome))
        return {seed: float(np.mean(outcomes)) for seed, outcomes in found.items()}


def is_success(rows: Sequence[Result]) -> bool:
    """Return whether the scores are shares of successful episodes in percent."""
    return all(row.score_name.startswith("success") for row in rows)


def count_successes(rows: Iterable[Result]) -> tuple[int, int]:
    """Return the successes and the number of all episodes of some evaluations."""
    outcomes = "".join(row.outcomes for row in rows)
    return outcomes.count("1"), len(outcomes)


def score_interval(rows: Sequence[Result], scores: Sequence[float] | np.ndarray) -> Interval | None:
    """Return the interval of a mean score over seeds, by the rule of `rules`."""
    return verdicts.score_interval(scores, count_successes(rows) if is_success(rows) else None)


def choose(rows: Sequence[Result], at: str) -> dict[int, tuple[Result, ...]]:
    """Return the evaluations of each seed that count.

    They are the last one; or the last three after the first update, as in the protocol of the FQL paper; or the one
    at the step where the mean over the seeds that have it is highest.

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
    """Group results by task, method, settings and number of actions drawn, in the order in which they come."""
    found: dict[tuple[str, str, str, int], list[Result]] = {}
    for result in results:
        found.setdefault(result.group, []).append(result)
    labels = make_labels([rows[0] for rows in found.values()])
    return [Group(key[0], labels[key], tuple(rows), choose(rows, at)) for key, rows in found.items()]


def make_labels(firsts: Sequence[Result]) -> dict[tuple[str, str, str, int], str]:
    """Return a label for each group: its method, and the settings that differ among the method's groups on a task."""
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
    """Return the default of a setting; "default" where its algorithm is not known here."""
    try:
        return result.setting(name)
    except ValueError:  # of a file of results: an algorithm that nobody registered, or the steps before online ones
        return "default"


def shown(value: Any) -> str:
    """Return a setting in few characters."""
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
