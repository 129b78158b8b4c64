"""Statistics of few seeds, many tasks and episodes that succeed or not.

Scores of several tasks are a sequence with the scores of the seeds of each task, since tasks may differ in seeds.
Intervals are of 95%.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

Tasks = Sequence[ArrayLike]  # the scores of the seeds of each task

CONFIDENCE, POWER = 0.95, 0.8
NORMAL = float(stats.norm.ppf((1 + CONFIDENCE) / 2))  # 1.96
DETECTABLE = NORMAL + float(stats.norm.ppf(POWER))  # 2.80
RESAMPLES = 2000


class Interval(NamedTuple):
    """From low to high."""

    low: float
    high: float

    def joined(self, other: "Interval") -> "Interval":
        """Return the interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


def mean_and_deviation(scores: ArrayLike) -> tuple[float, float]:
    """Return the mean over seeds, and their standard deviation with n - 1 below the sum; NaN for one seed."""
    values = np.asarray(scores, float)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan


def interquartile_mean(tasks: Tasks) -> float:
    """Return the mean of the runs of all tasks without the lowest and the highest quarter of them."""
    runs = np.sort(np.concatenate(tasks))
    cut = len(runs) // 4
    return float(runs[cut : len(runs) - cut].mean())


def bootstrap_interval(
    statistic: Callable[..., float], *groups: Tasks, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the stratified bootstrap interval of a statistic of one or more groups.

    In each resample, the seeds of each task of each group are drawn anew, with replacement and independently, as many
    as there were; the ends are the quantiles of the statistic at 2.5% and 97.5%.

    Args:
        statistic: A function of as many groups as are given.
        groups: The scores of each task's seeds, for each group.
        resamples: How often the seeds are drawn.
        seed: What the draws follow from.
    """
    generator = np.random.default_rng(seed)
    drawn = [[draw_again(task, resamples, generator) for task in group] for group in groups]
    values = [statistic(*([task[number] for task in group] for group in drawn)) for number in range(resamples)]
    return quantile_interval(values)


def bootstrap_mean_interval(scores: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Return the bootstrap interval of the mean over the seeds of one task."""
    return quantile_interval(draw_again(scores, resamples, np.random.default_rng(seed)).mean(1))


def draw_again(scores: ArrayLike, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return as many scores as there are, drawn with replacement, for each resample."""
    values = np.asarray(scores, float)
    return values[generator.integers(len(values), size=(resamples, len(values)))]


def quantile_interval(values: ArrayLike) -> Interval:
    low, high = np.quantile(np.asarray(values), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def probability_of_improvement(first: Tasks, second: Tasks) -> float:
    """Return the probability that a run of the first group scores higher than one of the second on the same task.

    It is the mean over tasks of the share of pairs of runs in which the first is higher; a tie counts half.
    """
    shares = []
    for ours, theirs in zip(first, second, strict=True):
        gaps = np.subtract.outer(np.asarray(ours, float), np.asarray(theirs, float))
        shares.append(np.mean((gaps > 0) + 0.5 * (gaps == 0)))
    return float(np.mean(shares))


def performance_profile(tasks: Tasks, thresholds: ArrayLike) -> np.ndarray:
    """Return, for each threshold, the share of runs whose score is above it; tasks count alike."""
    limits = np.asarray(thresholds, float)
    return np.mean([np.mean(np.asarray(each, float)[:, None] > limits, axis=0) for each in tasks], axis=0)


def wilson_interval(successes: float, episodes: int) -> Interval:
    """Return Wilson's score interval of a probability of success."""
    rate, spread = successes / episodes, NORMAL**2 / episodes
    middle = rate + spread / 2
    half = math.sqrt(spread * rate * (1 - rate) + spread**2 / 4)
    return Interval(max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread)))


def newcombe_interval(successes: float, episodes: int, other_successes: float, other_episodes: int) -> Interval:
    """Return Newcombe's hybrid score interval (his method 10) of the difference of two probabilities of success.

    It is made of the Wilson intervals of both and holds for episodes that are independent.
    """
    rate, other_rate = successes / episodes, other_successes / other_episodes
    own, other = wilson_interval(successes, episodes), wilson_interval(other_successes, other_episodes)
    difference = rate - other_rate
    return Interval(
        difference - math.hypot(rate - own.low, other.high - other_rate),
        difference + math.hypot(own.high - rate, other_rate - other.low),
    )


def paired_interval(differences: ArrayLike) -> Interval:
    """Return the interval of the mean of differences in success, one for each episode seed that both groups played.

    A difference is the success of one group in that episode, averaged over its seeds, less that of the other. The
    interval is the normal one after Agresti and Min: half an episode of each of the four pairs of outcomes is added,
    so that groups without any difference do not seem to be known exactly.
    """
    values = np.asarray(differences, float)
    count, total = len(values) + 2, values.sum()
    variance = ((values**2).sum() + 1 - total**2 / count) / count
    half = NORMAL * math.sqrt(variance / count)
    return Interval(max(-1.0, float(total / count - half)), min(1.0, float(total / count + half)))


def welch_interval(scores: ArrayLike, other_scores: ArrayLike) -> Interval:
    """Return Welch's t interval of the difference of two means over seeds; each side needs two seeds."""
    ours, theirs = np.asarray(scores, float), np.asarray(other_scores, float)
    difference = float(ours.mean() - theirs.mean())
    parts = [float(each.var(ddof=1)) / len(each) for each in (ours, theirs)]
    if not sum(parts):
        return Interval(difference, difference)
    freedom = sum(parts) ** 2 / sum(part**2 / (len(e) - 1) for part, e in zip(parts, (ours, theirs), strict=True))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(parts))
    return Interval(difference - half, difference + half)


def seeds_needed(deviation: float, other_deviation: float, difference: float) -> int:
    """Return how many seeds each group needs for Welch's test to find a difference four times in five, at least 2.

    The normal approximation, (1.96 + 0.84)^2 (deviation^2 + other_deviation^2) / difference^2, is too few where there
    are few; it is raised until the power of the test, by the noncentral t distribution, is enough.
    """
    ours, theirs = deviation**2, other_deviation**2
    if not ours + theirs:
        return 2
    count = max(2, math.ceil(DETECTABLE**2 * (ours + theirs) / difference**2))
    while power_of_welch(ours, theirs, difference, count) < POWER:
        count += 1
    return count


def power_of_welch(variance: float, other_variance: float, difference: float, seeds: int) -> float:
    """Return how often Welch's test finds a difference of two means over so many seeds each."""
    freedom = (seeds - 1) * (variance + other_variance) ** 2 / (variance**2 + other_variance**2)
    distance = abs(difference) / math.sqrt((variance + other_variance) / seeds)
    return float(stats.nct.sf(stats.t.ppf((1 + CONFIDENCE) / 2, freedom), freedom, distance))


def episodes_needed(rate: float, other_rate: float, difference: float) -> int:
    """Return about how many episodes each group needs for a difference of success to be found four times in five.

    By the normal approximation: (1.96 + 0.84)^2 (p (1 - p) + q (1 - q)) / difference^2, at least 1.
    """
    variance = rate * (1 - rate) + other_rate * (1 - other_rate)
    return max(1, math.ceil(DETECTABLE**2 * variance / difference**2))
