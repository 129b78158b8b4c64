"""Compare groups of results with a baseline: differences, intervals, verdicts."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drol.errors import InputError, unknown_name
from drol.results import statistical_tests
from drol.results.collect import read_all
from drol.results.difference import Differences, differences_of
from drol.results.groups import AT, Group, make_groups
from drol.results.merge import check_no_contradiction, differences_in_circumstances, distinct, more
from drol.results.result import EVALUATIONS, Result, Results
from drol.results.statistical_tests import Interval
from drol.results.verdicts import enough_seeds

logger = logging.getLogger(__name__)
NO_IQM = "no IQM: the groups have different tasks or numbers of seeds, so interquartile means are not comparable"


@dataclass(frozen=True)
class Overall:
    """Summary of the runs of one label over all its tasks.

    Attributes:
        label: The label.
        scores: The scores of the seeds of each task.
        interquartile_mean: The mean of all runs without the lowest and highest quarter; None if labels have different
            tasks or numbers of seeds, because these means are not comparable.
        interval: Its stratified bootstrap interval; None if a task has fewer than three seeds.
        improvement: The probability that a run is better than a run of the baseline on the same task, over the tasks
            that both have; None for the baseline and without common tasks.
        improvement_interval: Its stratified bootstrap interval.
    """

    label: str
    scores: dict[str, np.ndarray]
    interquartile_mean: float | None
    interval: Interval | None
    improvement: float | None = None
    improvement_interval: Interval | None = None


@dataclass(frozen=True)
class Comparison:
    """Groups of results and their differences from a baseline.

    Attributes:
        groups: A group for each task and label.
        baseline: The label that the others are compared with.
        differences: A difference for each other group on a task that the baseline has; as text, a table.
        overall: What each label amounts to on all tasks; empty where the scores of tasks are of different kinds.
        margin: The difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "best" or "last3".
        difference: The difference for which the needed seeds are estimated; None if not given.
        notes: Limits of the comparison, one line each.
        skipped: Unreadable runs and rows, one line each.
    """

    groups: list[Group]
    baseline: str
    differences: Differences
    overall: list[Overall]
    margin: float
    at: str
    difference: float | None = None
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(group.task for group in self.groups))

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(group.label for group in self.groups))


def compare(
    paths: Path | str | Iterable[Path | str],
    baseline: str | None = None,
    margin: float = 5.0,
    at: str = "last",
    evaluation: str = "training",
    difference: float | None = None,
) -> Comparison:
    """Compare runs: group them by task, method and settings, and compare each group with a baseline.

    Args:
        paths: Runs, folders with runs, and files of results; or one of these.
        baseline: The label of the baseline; the first group's if None.
        margin: The largest difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "last3" (the mean of the last three) or "best".
        evaluation: "training" for the evaluations of training, "extra" for those of `drol evaluate`.
        difference: A true difference in units of the score; the comparison estimates the seeds that each group needs to
            detect it with 80% power.

    Returns:
        The comparison; docs/comparing.md explains its numbers.

    Example:
        >>> import drol
        >>> drol.compare(["runs/a", "runs/b"]).differences[0].verdict  # doctest: +SKIP
        'better'
    """
    for name, value, allowed in (("at", at, AT), ("evaluation", evaluation, EVALUATIONS)):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    for name, value in (("margin", margin), ("difference", difference)):
        if value is not None and not value > 0:
            raise InputError(f"{name} is {value!r}; it must be above 0")
    return compare_results(read_all(paths), baseline, margin, at, evaluation, difference)


def compare_results(
    collected: Results,
    baseline: str | None = None,
    margin: float = 5.0,
    at: str = "last",
    evaluation: str = "training",
    difference: float | None = None,
) -> Comparison:
    """Compare collected results, as `compare` does."""
    results = [each for each in distinct(collected) if each.evaluation == evaluation]
    if not results:
        if collected.skipped and not collected:
            raise InputError(f"no readable results to compare: {collected.skipped[0]}{more(collected.skipped)}")
        advice = "train until the first evaluation; for runs without a simulator, use drol.compare_offline"
        advice = "`drol evaluate` adds extra evaluations" if evaluation == "extra" else advice
        raise InputError(f"these runs have no {evaluation} evaluation with a score; {advice}")
    check_no_contradiction(results)
    check_score_names(results)
    for words in collected.skipped:
        logger.warning(f"left out: {words}")
    groups = make_groups(results, at)
    labels = list(dict.fromkeys(group.label for group in groups))
    if baseline is not None and baseline not in labels:
        raise unknown_name("group", baseline, labels, f"The groups are: {', '.join(labels)}")
    baseline = baseline or labels[0]
    bases = {group.task: group for group in groups if group.label == baseline}
    others = [group for group in groups if group.label != baseline and group.task in bases]
    found = differences_of([(group, bases[group.task]) for group in others], margin, difference)
    one_scale = len({group.score_name for group in groups}) == 1
    alike = have_the_same_seeds(groups)
    overall = [overall_of(label, groups, baseline, alike) for label in labels] if one_scale else []
    notes = make_notes(results, groups, at, one_scale)
    if one_scale and not alike:
        notes.append(NO_IQM)
    notes += [
        f"{group.label} on {group.task} is not compared: {baseline} has no result on this task"
        for group in groups
        if group.task not in bases
    ]
    return Comparison(groups, baseline, found, overall, margin, at, difference, notes, collected.skipped)


def check_score_names(results: Iterable[Result]) -> None:
    """Raise `InputError` if the results of one task have different types of scores."""
    names: dict[str, str] = {}
    for each in results:
        if names.setdefault(each.task, each.score_name) != each.score_name:
            kinds = f"{names[each.task]!r} and {each.score_name!r}"
            raise InputError(f"the scores on {each.task} are {kinds}; compare runs with one type of score at a time")


def have_the_same_seeds(groups: Iterable[Group]) -> bool:
    """Return whether all labels have the same tasks with the same numbers of seeds."""
    found: dict[str, set[tuple[str, int]]] = {}
    for group in groups:
        found.setdefault(group.label, set()).add((group.task, len(group.scores)))
    return len({frozenset(each) for each in found.values()}) == 1


def overall_of(label: str, groups: Sequence[Group], baseline: str, comparable: bool) -> Overall:
    """Summarise the runs of a label over all tasks, with the probability that they are better than the baseline's."""
    own = {group.task: group.scores for group in groups if group.label == label}
    base = {group.task: group.scores for group in groups if group.label == baseline and group.task in own}
    tasks = list(own.values())
    center = statistical_tests.interquartile_mean(tasks) if comparable else None
    interval = bootstrapped(statistical_tests.interquartile_mean, tasks) if comparable else None
    if label == baseline or not base:
        return Overall(label, own, center, interval)
    ours, theirs = [own[task] for task in base], list(base.values())
    chance = statistical_tests.probability_of_improvement(ours, theirs)
    spread = bootstrapped(statistical_tests.probability_of_improvement, ours, theirs)
    return Overall(label, own, center, interval, chance, spread)


def bootstrapped(statistic: Callable[..., float], *sides: list[np.ndarray]) -> Interval | None:
    """Return the bootstrap interval of a statistic; None if a task has too few seeds or the interval has no width."""
    if not enough_seeds(*(len(scores) for tasks in sides for scores in tasks)):
        return None
    interval = statistical_tests.bootstrap_interval(statistic, *sides)
    return (
        interval if interval.high > interval.low else None
    )  # equal scores of three seeds do not make the mean certain


def make_notes(results: Sequence[Result], groups: Sequence[Group], at: str, one_scale: bool) -> list[str]:
    """Return the limits of a comparison, one line each."""
    notes = [f"{line}; this alone may change the scores" for line in differences_in_circumstances(results)]
    for task in dict.fromkeys(group.task for group in groups):
        own = [group for group in groups if group.task == task]
        if at != "best" and len({step for group in own for step in group.steps}) > 1:
            steps = "; ".join(f"{group.label} {', '.join(f'{step:,}' for step in group.steps)}" for group in own)
            notes.append(f"on {task} the groups were evaluated after different numbers of updates: {steps}")
    if at == "best":
        notes.append(
            "the best evaluation was selected by its score, which is therefore biased upwards; --at last is not"
        )
    if at == "last3" and any(len(rows) < 3 for group in groups for rows in group.chosen.values()):
        notes.append("some seeds have fewer than three evaluations after the first update; the existing ones are used")
    if not one_scale:
        names = ", ".join(sorted({group.score_name for group in groups}))
        notes.append(f"the tasks have different types of scores ({names}), so there is no summary over tasks")
    return notes
