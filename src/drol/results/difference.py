"""The differences of groups on the same tasks: intervals, p values after Holm's correction, verdicts."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drol.results import statistical_tests
from drol.results.groups import Group, count_successes, is_success
from drol.results.statistical_tests import CONFIDENCE, Interval
from drol.results.verdicts import (
    LEAST_SEEDS,
    TOO_FEW,
    TOO_FEW_WORDS,
    corrected,
    enough_seeds,
    is_decided,
)

BETTER, WORSE, EQUAL, UNDERPOWERED = "better", "worse", "equal", "underpowered"


@dataclass(frozen=True)
class Difference:
    """The difference in score between a group and a baseline on the same task.

    Attributes:
        group: The group.
        baseline: The baseline.
        value: The mean score of the group minus that of the baseline.
        interval: Its 95% interval, not corrected for other comparisons; None if a side has one seed.
        p: The p value after Holm's correction for all comparisons of the table; None with too few seeds.
        detectable: The smallest true difference that these seeds detect with 80% power; None with too few seeds.
        seeds_needed: The seeds that each group needs to detect the difference given by the caller with 80% power;
            None if no difference was given, or a side has one seed.
        verdict: "better", "worse", "equal" (within the margin), "underpowered" or "too few seeds".
        words: The verdict with its margin, or with the detectable difference.
    """

    group: Group
    baseline: Group
    value: float
    interval: Interval | None
    p: float | None
    detectable: float | None
    seeds_needed: int | None
    verdict: str
    words: str


class Differences(list[Difference]):
    """Differences that print as a table."""

    def __repr__(self) -> str:
        cells = [
            (each.group.label, each.group.task, f"{each.value:+.1f}", interval_text(each.interval), each.words)
            for each in self
        ]
        baselines = ", ".join(dict.fromkeys(each.baseline.label for each in self))
        rows = [("group", "task", f"less {baselines}", "95% interval", "verdict"), *cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:+.1f} to {interval.high:+.1f}"


def differences_of(pairs: Sequence[tuple[Group, Group]], margin: float, difference: float | None = None) -> Differences:
    """Return the difference of each pair of groups; p values are corrected for the number of pairs.

    Args:
        pairs: Each group with its baseline on the same task.
        margin: The difference that does not matter, in units of the score.
        difference: A true difference for which the needed seeds are estimated.
    """
    p_values = [
        statistical_tests.p_value(functools.partial(difference_interval, *pair)) if has_enough_seeds(*pair) else None
        for pair in pairs
    ]
    found = zip(pairs, corrected(p_values), strict=True)
    return Differences(difference_of(*pair, p, margin, difference) for pair, p in found)


def difference_of(
    group: Group, baseline: Group, p: float | None, margin: float, difference: float | None
) -> Difference:
    """Return a difference with its interval and the verdict of the corrected p value."""
    value = float(group.scores.mean() - baseline.scores.mean())
    if min(len(group.scores), len(baseline.scores)) < 2:
        return Difference(group, baseline, value, None, None, None, None, TOO_FEW, TOO_FEW_WORDS)
    interval, deviation = difference_interval(group, baseline), seed_deviation(group, baseline)
    needed = statistical_tests.seeds_needed(deviation, difference, LEAST_SEEDS) if difference else None
    if not has_enough_seeds(group, baseline):
        return Difference(group, baseline, value, interval, None, None, needed, TOO_FEW, TOO_FEW_WORDS)
    detectable = statistical_tests.detectable_difference(deviation, len(group.scores), len(baseline.scores))
    if -margin < interval.low and interval.high < margin:
        verdict, words = EQUAL, f"{EQUAL} within {margin:g}"
    elif is_decided(p):
        verdict = words = BETTER if value > 0 else WORSE
    else:
        possible = detectable < 100 or not is_success([*group.counted, *baseline.counted])
        found = f"could detect {detectable:.3g} or more" if possible else "no difference could be detected"
        verdict, words = UNDERPOWERED, f"{UNDERPOWERED}: {found}"
    return Difference(group, baseline, value, interval, p, detectable, needed, verdict, words)


def has_enough_seeds(group: Group, baseline: Group) -> bool:
    return enough_seeds(len(group.scores), len(baseline.scores))


def difference_interval(group: Group, baseline: Group, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of the difference of two groups; each group needs two seeds.

    Two sources of variance count: training seeds (Welch) and, for success rates, episodes. Each end of the interval is
    the wider one of the two, clipped to a difference of 100% for success rates.
    """
    by_seeds = statistical_tests.welch_interval(group.scores, baseline.scores, confidence)
    by_episodes = episode_interval(group, baseline)
    if by_episodes is None:
        return by_seeds
    joined = by_seeds.joined(by_episodes(confidence))
    return Interval(max(joined.low, -100.0), min(joined.high, 100.0))


def episode_interval(group: Group, baseline: Group) -> Callable[[float], Interval] | None:
    """Return the interval of the difference of two success rates over episodes; None for other scores.

    If both groups have the same episode seeds, episodes are paired; otherwise the interval is Newcombe's.
    """
    if not is_success([*group.counted, *baseline.counted]):
        return None
    own, other = group.successes_by_episode, baseline.successes_by_episode
    counts = (*count_successes(group.counted), *count_successes(baseline.counted))

    def interval_at(confidence: float) -> Interval:
        if own.keys() == other.keys():
            low, high = statistical_tests.paired_interval([own[seed] - other[seed] for seed in own], confidence)
        else:
            low, high = statistical_tests.newcombe_interval(*counts, confidence)
        return Interval(100 * low, 100 * high)

    return interval_at


def seed_deviation(group: Group, baseline: Group) -> float:
    """Return the standard deviation over seeds within two groups; for success rates, at least that of their episodes.

    Otherwise, three seeds with equal scores would appear to detect every difference.
    """
    pair = (group, baseline)
    over_seeds = statistical_tests.pooled_deviation(group.scores, baseline.scores)
    if not is_success([row for each in pair for row in each.counted]):
        return over_seeds
    variances = []
    for each in pair:
        successes, episodes = count_successes(each.counted)
        rate = (successes + 2) / (episodes + 4)  # never 0 or 1
        variances.append(rate * (1 - rate) * len(each.scores) / episodes)
    return max(over_seeds, 100 * (sum(variances) / 2) ** 0.5)
