"""Compare groups of results with one of them: the difference, its interval, a verdict."""

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
NO_IQM = "no IQM: the groups differ in their tasks or in the seeds of a task, so interquartile means would not compare"


@dataclass(frozen=True)
class Overall:
    """What the runs of one label on all its tasks amount to.

    Attributes:
        label: The label.
        scores: The scores of the seeds of each task.
        interquartile_mean: The mean of all runs without the lowest and highest quarter; None where labels differ in
            their tasks or in the seeds of a task, because such means do not compare.
        interval: Its stratified bootstrap interval; None where a task has fewer than three seeds.
        improvement: The probability that a run is better than one of the baseline on the same task, over the tasks
            that both have; None for the baseline itself and without such a task.
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
    """Groups of results and how they compare with one of them.

    Attributes:
        groups: A group for each task and label.
        baseline: The label that the others are compared with.
        differences: A difference for each other group on a task that the baseline has; as text, a table.
        overall: What each label amounts to on all tasks; empty where the scores of tasks are of different kinds.
        margin: The difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "best" or "last3".
        difference: The difference for which each comparison says how many seeds it needs; None if none was named.
        notes: What a reader must know, one line each.
        skipped: What could not be read, one line each.
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
    """Compare runs: group them by task, method and settings, and compare each group with one of them.

    Args:
        paths: Runs, folders with runs, and files of results; or one of these.
        baseline: The label of the groups that the others are compared with; that of the first group if None.
        margin: The difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "last3" (the mean of the last three) or "best".
        evaluation: "training" for the evaluations of training, "extra" for those of `drol evaluate`.
        difference: A true difference that should be found, in units of the score; the comparison then says how many
            seeds each group needs to find it four times in five.

    Returns:
        The comparison; docs/comparing.md says what its numbers mean.

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
    """Compare results that were collected; as `compare`."""
    results = [each for each in distinct(collected) if each.evaluation == evaluation]
    if not results:
        if collected.skipped and not collected:
            raise InputError(f"nothing was left to compare: {collected.skipped[0]}{more(collected.skipped)}")
        advice = "train until the first one; for runs without a simulator, use drol.compare_offline"
        advice = "`drol evaluate` adds extra ones" if evaluation == "extra" else advice
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
        f"{group.label} on {group.task} is compared with nothing: {baseline} has no result there"
        for group in groups
        if group.task not in bases
    ]
    return Comparison(groups, baseline, found, overall, margin, at, difference, notes, collected.skipped)


def check_score_names(results: Iterable[Result]) -> None:
    """Refuse results of one task whose scores are of different kinds."""
    names: dict[str, str] = {}
    for each in results:
        if names.setdefault(each.task, each.score_name) != each.score_name:
            kinds = f"{names[each.task]!r} and {each.score_name!r}"
            raise InputError(f"the scores on {each.task} are {kinds}; compare runs of one kind at a time")


def have_the_same_seeds(groups: Iterable[Group]) -> bool:
    """Return whether all labels have the same tasks with the same numbers of seeds."""
    found: dict[str, set[tuple[str, int]]] = {}
    for group in groups:
        found.setdefault(group.label, set()).add((group.task, len(group.scores)))
    return len({frozenset(each) for each in found.values()}) == 1


def overall_of(label: str, groups: Sequence[Group], baseline: str, comparable: bool) -> Overall:
    """Return what the runs of a label amount to on all tasks, and how often they are better than the baseline's."""
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
    """Return the bootstrap interval of a statistic; None with too few seeds of a task, or where it has no width."""
    if not enough_seeds(*(len(scores) for tasks in sides for scores in tasks)):
        return None
    interval = statistical_tests.bootstrap_interval(statistic, *sides)
    return interval if interval.high > interval.low else None  # no three seeds make it certain


def make_notes(results: Sequence[Result], groups: Sequence[Group], at: str, one_scale: bool) -> list[str]:
    """Return what a reader must know before trusting the numbers."""
    notes = [f"{line}; scores may differ for that reason alone" for line in differences_in_circumstances(results)]
    for task in dict.fromkeys(group.task for group in groups):
        own = [group for group in groups if group.task == task]
        if at != "best" and len({step for group in own for step in group.steps}) > 1:
            steps = "; ".join(f"{group.label} {', '.join(f'{step:,}' for step in group.steps)}" for group in own)
            notes.append(f"on {task} the groups were evaluated after different numbers of updates: {steps}")
    if at == "best":
        notes.append("the best evaluation was chosen by its own score, which flatters it; --at last does not")
    if at == "last3" and any(len(rows) < 3 for group in groups for rows in group.chosen.values()):
        notes.append("some seeds have fewer than three evaluations after the first update; those that are there count")
    if not one_scale:
        names = ", ".join(sorted({group.score_name for group in groups}))
        notes.append(f"the scores of the tasks are of different kinds ({names}), so nothing is summed up over tasks")
    return notes
