"""Statistics for few seeds, many tasks and success rates.

Scores of several tasks are a sequence with the scores of each task's seeds, because tasks may have different seeds.
Intervals are 95% unless a confidence is given. `verdicts` defines which of them tables use.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

Tasks = Sequence[ArrayLike]  # the scores of the seeds of each task

CONFIDENCE, POWER = 0.95, 0.8
RESAMPLES = 2000
SMALLEST_P = 1e-12


class Interval(NamedTuple):
    """An interval from low to high."""

    low: float
    high: float

    def joined(self, other: "Interval") -> "Interval":
        """Return the smallest interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


def mean_and_deviation(scores: ArrayLike) -> tuple[float, float]:
    """Return the mean over seeds and the sample standard deviation (n - 1); NaN for one seed."""
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

    Each resample draws the seeds of each task and group with replacement, as many as there are. The ends are the
    quantiles of the statistic at 2.5% and 97.5%.

    Args:
        statistic: A function with one argument per group.
        groups: The scores of each task's seeds, for each group.
        resamples: The number of resamples.
        seed: The random seed of the draws.
    """
    generator = np.random.default_rng(seed)
    drawn = [[draw_again(task, resamples, generator) for task in group] for group in groups]
    values = [statistic(*([task[number] for task in group] for group in drawn)) for number in range(resamples)]
    return quantile_interval(values)


def cluster_bootstrap_interval(
    statistic: Callable[[np.ndarray], float | None], clusters: Sequence[ArrayLike], seed: int = 0
) -> Interval:
    """Return the bootstrap interval of a statistic of rows that come in clusters, such as the policies of one run.

    Each resample draws as many clusters as there are, with replacement and with all their rows, because the rows of a
    cluster are not independent. Resamples without a value (None) are omitted.

    Args:
        statistic: A function of the rows of all clusters, [rows, columns].
        clusters: The rows of each cluster, [rows, columns].
        seed: The random seed of the draws.
    """
    rows = [np.asarray(each, float) for each in clusters]
    drawn = np.random.default_rng(seed).integers(len(rows), size=(RESAMPLES, len(rows)))
    values = [statistic(np.concatenate([rows[number] for number in numbers])) for numbers in drawn]
    return quantile_interval([value for value in values if value is not None])


def draw_again(scores: ArrayLike, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Draw as many scores as there are, with replacement, for each resample."""
    values = np.asarray(scores, float)
    return values[generator.integers(len(values), size=(resamples, len(values)))]


def quantile_interval(values: ArrayLike) -> Interval:
    low, high = np.quantile(np.asarray(values), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def probability_of_improvement(first: Tasks, second: Tasks) -> float:
    """Return the probability that a run of the first group scores higher than a run of the second on the same task.

    This is the mean over tasks of the share of pairs of runs in which the first is higher; a tie counts half.
    """
    shares = []
    for ours, theirs in zip(first, second, strict=True):
        gaps = np.subtract.outer(np.asarray(ours, float), np.asarray(theirs, float))
        shares.append(np.mean((gaps > 0) + 0.5 * (gaps == 0)))
    return float(np.mean(shares))


def performance_profile(tasks: Tasks, thresholds: ArrayLike) -> np.ndarray:
    """Return the share of runs with a score above each threshold; all tasks have the same weight."""
    limits = np.asarray(thresholds, float)
    return np.mean([np.mean(np.asarray(each, float)[:, None] > limits, axis=0) for each in tasks], axis=0)


def mean_interval(scores: ArrayLike) -> Interval:
    """Return Student's t interval of the mean over at least two seeds."""
    values = np.asarray(scores, float)
    return t_interval(float(values.mean()), [(float(values.var(ddof=1)) / len(values), len(values) - 1)])


def wilson_interval(successes: float, episodes: int, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's score interval of a probability of success."""
    rate, spread = successes / episodes, normal_quantile(confidence) ** 2 / episodes
    middle = rate + spread / 2
    half = math.sqrt(spread * rate * (1 - rate) + spread**2 / 4)
    return Interval(max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread)))


def newcombe_interval(
    successes: float, episodes: int, other_successes: float, other_episodes: int, confidence: float = CONFIDENCE
) -> Interval:
    """Return Newcombe's hybrid score interval (his method 10) of the difference of two probabilities of success.

    It combines the Wilson intervals of both and assumes independent episodes.
    """
    rate, other_rate = successes / episodes, other_successes / other_episodes
    own = wilson_interval(successes, episodes, confidence)
    other = wilson_interval(other_successes, other_episodes, confidence)
    difference = rate - other_rate
    return Interval(
        difference - math.hypot(rate - own.low, other.high - other_rate),
        difference + math.hypot(own.high - rate, other_rate - other.low),
    )


def paired_interval(differences: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of the mean of differences in success, one for each episode seed that both groups played.

    A difference is the success of one group in that episode, averaged over its seeds, minus that of the other. The
    interval is the normal interval of Agresti and Min: it adds half an episode of each of the four pairs of outcomes,
    so that groups without any difference still have an interval with a width.
    """
    values = np.asarray(differences, float)
    count, total = len(values) + 2, values.sum()
    variance = ((values**2).sum() + 1 - total**2 / count) / count
    half = normal_quantile(confidence) * math.sqrt(variance / count)
    return Interval(max(-1.0, float(total / count - half)), min(1.0, float(total / count + half)))


def welch_interval(scores: ArrayLike, other_scores: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return Welch's t interval of the difference of two means over seeds; each side needs two seeds."""
    sides = [np.asarray(each, float) for each in (scores, other_scores)]
    parts = [(float(each.var(ddof=1)) / len(each), len(each) - 1) for each in sides]
    return t_interval(float(sides[0].mean() - sides[1].mean()), parts, confidence)


def t_interval(center: float, parts: Sequence[tuple[float, int]], confidence: float = CONFIDENCE) -> Interval:
    """Return the t interval of a sum of independent means, with the degrees of freedom of Welch and Satterthwaite.

    Args:
        center: The value of the sum.
        parts: The squared standard error of each mean, and its degrees of freedom.
        confidence: The probability that the interval contains the true value.
    """
    variance = sum(part for part, _ in parts)
    if not variance:
        return Interval(center, center)
    freedom = variance**2 / sum(part**2 / count for part, count in parts)
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(variance)
    return Interval(center - half, center + half)


def p_value(interval_at: Callable[[float], Interval]) -> float:
    """Return the two-sided p value of an interval: the largest p at which it contains 0, at least 1e-12.

    Args:
        interval_at: A function from a confidence to the interval, which grows with the confidence.
    """

    def holds_zero(p: float) -> bool:
        low, high = interval_at(1 - p)
        return low <= 0 <= high

    low, high = math.log(SMALLEST_P), 0.0
    if not holds_zero(SMALLEST_P):
        return SMALLEST_P
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds_zero(math.exp(middle)) else (low, middle)
    return math.exp(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values after Holm's correction for their number.

    The smallest p value is multiplied by their number, the next by one less, and so on; a p value is never below the
    one before. With all verdicts at 5%, the probability of any false verdict is at most 5%.
    """
    corrected, before = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        before = max(before, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = before
    return corrected


def pooled_deviation(scores: ArrayLike, other_scores: ArrayLike) -> float:
    """Return the pooled standard deviation over seeds of two groups; each group needs two seeds."""
    sides = [np.asarray(each, float) for each in (scores, other_scores)]
    squares = sum(float(each.var(ddof=1)) * (len(each) - 1) for each in sides)
    return math.sqrt(squares / sum(len(each) - 1 for each in sides))


def detectable_difference(deviation: float, seeds: int, other_seeds: int) -> float:
    """Return the smallest true difference that a t test of these seeds detects with 80% power.

    Args:
        deviation: The standard deviation over seeds within the groups.
        seeds: The number of seeds of one group.
        other_seeds: The number of seeds of the other group.
    """
    freedom = seeds + other_seeds - 2
    distance = special.nctdtrinc(freedom, 1 - POWER, stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return float(distance) * deviation * math.sqrt(1 / seeds + 1 / other_seeds)


def seeds_needed(deviation: float, difference: float, least: int = 2) -> int:
    """Return the seeds that each of two groups needs for a t test to detect a true difference with 80% power.

    Args:
        deviation: The standard deviation over seeds within the groups.
        difference: The true difference.
        least: The smallest number to return.
    """
    reach = normal_quantile(CONFIDENCE) + float(stats.norm.ppf(POWER))  # 2.80
    count = max(2, least, math.floor(2 * (reach * deviation / difference) ** 2))
    while deviation and t_power(abs(difference) / (deviation * math.sqrt(2 / count)), 2 * count - 2) < POWER:
        count += 1
    return count


def t_power(distance: float, freedom: int) -> float:
    """Return the power of a two-sided t test for a difference of `distance` standard errors."""
    return float(stats.nct.sf(stats.t.ppf((1 + CONFIDENCE) / 2, freedom), freedom, distance))


def normal_quantile(confidence: float) -> float:
    """Return the half-width of a normal interval in standard deviations: 1.96 for 95%."""
    return float(stats.norm.ppf((1 + confidence) / 2))
