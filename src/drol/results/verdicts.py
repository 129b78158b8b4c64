"""The rules for intervals and verdicts of all tables, pages and statuses.

    1. The interval of a mean is Student's over seeds and, for success rates, at least as wide as Wilson's over all
       episodes. One seed has only Wilson's interval, which covers its policy but not other seeds.
    2. The interval of a difference is Welch's over seeds and, for success rates, at least as wide as the episodes'.
    3. A verdict needs three seeds on each side. With fewer it is "too few seeds".
    4. "Better", "worse", "above" and "below" need p < 0.05 after Holm's correction for all comparisons of the table.

docs/comparing.md explains these rules to users.
"""

from collections.abc import Sequence

import numpy as np

from drol.results import statistical_tests
from drol.results.statistical_tests import CONFIDENCE, Interval

LEAST_SEEDS = 3  # on each side of a verdict, and for each task of a bootstrap
LEVEL = round(1 - CONFIDENCE, 9)  # 0.05
TOO_FEW = "too few seeds"
TOO_FEW_WORDS = f"{TOO_FEW}: each side needs {LEAST_SEEDS}"


def enough_seeds(*counts: int) -> bool:
    """Return whether all of these numbers of seeds are enough for a verdict."""
    return min(counts, default=0) >= LEAST_SEEDS


def score_interval(scores: Sequence[float] | np.ndarray, counts: tuple[int, int] | None = None) -> Interval | None:
    """Return the interval of a mean score; None if it cannot be estimated.

    Args:
        scores: The score of each seed.
        counts: The numbers of successes and episodes, if scores are success rates in percent.
    """
    by_seeds = statistical_tests.mean_interval(scores) if len(scores) > 1 else None
    if counts is None or not counts[1]:
        return (
            by_seeds if by_seeds and by_seeds.high > by_seeds.low else None
        )  # equal scores of all seeds do not make the mean exact
    low, high = statistical_tests.wilson_interval(*counts)
    by_episodes = Interval(100 * low, 100 * high)
    joined = by_seeds.joined(by_episodes) if by_seeds else by_episodes
    return Interval(max(joined.low, 0.0), min(joined.high, 100.0))


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p values after Holm's correction for the number of known ones."""
    known = iter(statistical_tests.holm([each for each in p_values if each is not None]))
    return [None if each is None else next(known) for each in p_values]


def is_decided(corrected_p: float | None) -> bool:
    """Return whether a corrected p value is significant."""
    return corrected_p is not None and corrected_p < LEVEL


def p_words(p: float | None) -> str:
    """Format a p value briefly."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"
