"""Compare groups of results with one of them: the difference, its interval, a verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drol.errors import InputError, unknown_name
from drol.experiments.compare import statistics
from drol.experiments.compare.groups import AT, Group, count_successes, is_success, make_groups
from drol.experiments.compare.statistics import Interval
from drol.experiments.results.collect import collect_results
from drol.experiments.results.merge import check_no_contradiction, differences_in_circumstances, distinct, more
from drol.experiments.results.result import EVALUATIONS, Result, Results

BETTER, WORSE, EQUAL, UNDERPOWERED = "better", "worse", "equal", "underpowered"


@dataclass(frozen=True)
class Difference:
    """How much a group scores more than another one on the same task.

    Attributes:
        group: The group.
        baseline: What it is compared with.
        value: The mean score of the group less that of the baseline.
        interval: What this leaves open; None where one seed's score is no share of successes.
        verdict: "better", "worse", "equal" (within the margin) or "underpowered".
        words: The verdict with its margin, or with what would be needed.
    """

    group: Group
    baseline: Group
    value: float
    interval: Interval | None
    verdict: str
    words: str


@dataclass(frozen=True)
class Overall:
    """What the runs of one label on all its tasks amount to.

    Attributes:
        label: The label.
        scores: The scores of the seeds of each task.
        interquartile_mean: The mean of all runs without the lowest and highest quarter.
        interval: Its stratified bootstrap interval; None where no task has two seeds.
        improvement: The probability that a run is better than one of the baseline on the same task, over the tasks
            that both have; None for the baseline itself and without such a task.
        improvement_interval: Its stratified bootstrap interval.
    """

    label: str
    scores: dict[str, np.ndarray]
    interquartile_mean: float
    interval: Interval | None
    improvement: float | None = None
    improvement_interval: Interval | None = None


@dataclass(frozen=True)
class Comparison:
    """Groups of results and how they compare with one of them.

    Attributes:
        groups: A group for each task and label.
        baseline: The label that the others are compared with.
        differences: A difference for each other group on a task that the baseline has.
        overall: What each label amounts to on all tasks; empty where the scores of tasks are of different kinds.
        margin: The difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "best" or "last3".
        notes: What a reader must know, one line each.
        skipped: What could not be read, one line each.
    """

    groups: list[Group]
    baseline: str
    differences: list[Difference]
    overall: list[Overall]
    margin: float
    at: str
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
) -> Comparison:
    """Compare runs: group them by task, method and settings, and compare each group with one of them.

    Args:
        paths: Runs, folders with runs, and files of results; or one of these.
        baseline: The label of the groups that the others are compared with; that of the first group if None.
        margin: The difference that does not matter, in units of the score.
        at: Which evaluations count: "last", "last3" (the mean of the last three) or "best".
        evaluation: "training" for the evaluations of training, "extra" for those of `drol evaluate`.

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
    if not margin > 0:
        raise InputError(f"margin is {margin!r}; it must be above 0")
    return compare_results(collect_results(paths), baseline, margin, at, evaluation)


def compare_results(
    collected: Results,
    baseline: str | None = None,
    margin: float = 5.0,
    at: str = "last",
    evaluation: str = "training",
) -> Comparison:
    """Compare results that were collected; as `compare`."""
    results = [each for each in distinct(collected) if each.evaluation == evaluation]
    if not results:
        if collected.skipped and not collected:
            raise InputError(f"nothing was left to compare: {collected.skipped[0]}{more(collected.skipped)}")
        advice = "`drol evaluate` adds extra ones" if evaluation == "extra" else "train until the first one"
        raise InputError(f"these runs have no {evaluation} evaluation with a score; {advice}")
    check_no_contradiction(results)
    check_score_names(results)
    groups = make_groups(results, at)
    labels = list(dict.fromkeys(group.label for group in groups))
    if baseline is not None and baseline not in labels:
        raise unknown_name("group", baseline, labels, f"The groups are: {', '.join(labels)}")
    baseline = baseline or labels[0]
    bases = {group.task: group for group in groups if group.label == baseline}
    others = [group for group in groups if group.label != baseline and group.task in bases]
    found = [difference_of(group, bases[group.task], margin) for group in others]
    one_scale = len({group.score_name for group in groups}) == 1
    overall = [overall_of(label, groups, baseline) for label in labels] if one_scale else []
    notes = make_notes(results, groups, at, one_scale)
    notes += [
        f"{group.label} on {group.task} is compared with nothing: {baseline} has no result there"
        for group in groups
        if group.task not in bases
    ]
    return Comparison(groups, baseline, found, overall, margin, at, notes, collected.skipped)


def check_score_names(results: Iterable[Result]) -> None:
    """Refuse results of one task whose scores are of different kinds."""
    names: dict[str, str] = {}
    for each in results:
        if names.setdefault(each.task, each.score_name) != each.score_name:
            kinds = f"{names[each.task]!r} and {each.score_name!r}"
            raise InputError(f"the scores on {each.task} are {kinds}; compare runs of one kind at a time")


def difference_of(group: Group, baseline: Group, margin: float) -> Difference:
    """Return the difference of two groups on the same task, with its interval and the verdict.

    Two intervals say what is open: that of the training seeds (Welch) and, for success rates, that of the episodes
    (paired by episode seed where both played the same ones, else Newcombe's). At each end, the wider one counts.
    """
    value = float(group.scores.mean() - baseline.scores.mean())
    by_episodes, by_seeds = episode_interval(group, baseline), None
    if min(len(group.scores), len(baseline.scores)) > 1:
        by_seeds = statistics.welch_interval(group.scores, baseline.scores)
    interval = by_seeds.joined(by_episodes) if by_seeds and by_episodes else by_seeds or by_episodes
    if interval and by_episodes:  # Welch's knows no bounds, but no two success rates differ by more than all
        interval = Interval(max(interval.low, -100.0), min(interval.high, 100.0))
    if by_seeds is None:
        words = f"{UNDERPOWERED}: one seed; at least two of each are needed"
        return Difference(group, baseline, value, interval, UNDERPOWERED, words)
    assert interval is not None
    if -margin < interval.low and interval.high < margin:
        verdict, words = EQUAL, f"{EQUAL} within {margin:g}"
    elif interval.low > 0 or interval.high < 0:
        verdict = words = BETTER if interval.low > 0 else WORSE
    else:
        verdict, words = (
            UNDERPOWERED,
            f"{UNDERPOWERED}: {what_is_needed(group, baseline, by_seeds, by_episodes, margin)}",
        )
    return Difference(group, baseline, value, interval, verdict, words)


def episode_interval(group: Group, baseline: Group) -> Interval | None:
    """Return what the episodes leave open of the difference of two success rates; None for other scores."""
    if not is_success([*group.counted, *baseline.counted]):
        return None
    own, other = group.successes_by_episode(), baseline.successes_by_episode()
    if own.keys() == other.keys():
        low, high = statistics.paired_interval([own[seed] - other[seed] for seed in own])
    else:
        low, high = statistics.newcombe_interval(*count_successes(group.counted), *count_successes(baseline.counted))
    return Interval(100 * low, 100 * high)


def what_is_needed(
    group: Group, baseline: Group, by_seeds: Interval, by_episodes: Interval | None, margin: float
) -> str:
    """Return about how many more seeds, or episodes, would find the difference; one within the margin need not be."""
    size = max(margin, abs(group.scores.mean() - baseline.scores.mean()))
    pair, count = (group, baseline), min(len(group.scores), len(baseline.scores))
    if by_episodes is None or by_seeds.high - by_seeds.low >= by_episodes.high - by_episodes.low:
        deviation, other_deviation = (statistics.mean_and_deviation(each.scores)[1] for each in pair)
        more = max(1, statistics.seeds_needed(deviation, other_deviation, size) - count)
        return f"about {more:,} more seed{'s' if more > 1 else ''} of each"
    played = [count_successes(each.counted) for each in pair]
    rate, other_rate = ((successes + 2) / (episodes + 4) for successes, episodes in played)  # never 0 or 1
    needed = statistics.episodes_needed(rate, other_rate, size / 100)
    more = max(1, round((needed - min(episodes for _, episodes in played)) / count))
    return f"about {more:,} more episode{'s' if more > 1 else ''} of each seed"


def overall_of(label: str, groups: Sequence[Group], baseline: str) -> Overall:
    """Return what the runs of a label amount to on all tasks, and how often they are better than the baseline's."""
    own = {group.task: group.scores for group in groups if group.label == label}
    base = {group.task: group.scores for group in groups if group.label == baseline and group.task in own}
    tasks = list(own.values())
    center = statistics.interquartile_mean(tasks)
    several = all(len(scores) > 1 for scores in tasks)  # a task with one seed would seem to be known exactly
    interval = statistics.bootstrap_interval(statistics.interquartile_mean, tasks) if several else None
    if label == baseline or not base:
        return Overall(label, own, center, interval)
    ours, theirs = [own[task] for task in base], list(base.values())
    chance = statistics.probability_of_improvement(ours, theirs)
    several = all(len(scores) > 1 for scores in (*ours, *theirs))
    spread = statistics.bootstrap_interval(statistics.probability_of_improvement, ours, theirs) if several else None
    return Overall(label, own, center, interval, chance, spread)


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
