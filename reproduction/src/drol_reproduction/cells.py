"""The cells of the paper's tables: our result, the published one and a verdict on the difference."""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drol.results import statistical_tests
from drol.results.statistical_tests import CONFIDENCE, Interval
from drol.results.verdicts import TOO_FEW, corrected, enough_seeds, is_decided
from drol_reproduction.experiments import TUNED
from drol_reproduction.published import PUBLISHED_SEEDS, Published

ONE_STEP = ("fql", "drol", TUNED)  # columns that the paper underlines where they are bold
BOLD = 0.95  # share of the best score in the row from which a cell is bold
ROUNDING = 0.5  # published numbers are whole
NOISE = "within noise"


@dataclass(frozen=True)
class Cell:
    """Our result, the published one, and the verdict on the difference."""

    mean: float | None  # None: not run
    deviation: float | None  # over seeds; None with one seed
    seeds: int
    published: Published | None
    interval: Interval | None  # for the difference from the published number, not corrected for other cells
    verdict: str  # "within noise", "above", "below", "not run", "not published" or "too few seeds"
    p: float | None = None  # p value of this difference; in a table, after Holm's correction for all of its cells
    tasks: tuple[str, ...] = ()  # the tasks in the mean
    bold: bool = False
    underlined: bool = False


class Summary(NamedTuple):
    """A mean over seeds, their standard deviation (None with one seed), and the number of seeds."""

    mean: float
    deviation: float | None
    seeds: int


def summarised(tasks: Sequence[Sequence[float]]) -> Summary | None:
    """Return the mean over tasks of the means over seeds; the standard deviation assumes independent tasks."""
    if not tasks:
        return None
    seeds = min(map(len, tasks))
    variances = [float(np.var(own, ddof=1)) for own in tasks] if seeds > 1 else []
    deviation = math.sqrt(sum(variances)) / len(tasks) if variances else None
    return Summary(float(np.mean([np.mean(own) for own in tasks])), deviation, seeds)


def family_summary(tasks: Sequence[Mapping[int, float]]) -> Summary | None:
    """Return the mean over tasks; if all have the same seeds, the deviation is over each seed's mean over tasks."""
    if tasks and all(own.keys() == tasks[0].keys() for own in tasks):
        return summarised([[float(np.mean([own[seed] for own in tasks])) for seed in tasks[0]]])
    return summarised([list(own.values()) for own in tasks])


def mean_published(cells: Sequence[Published | None]) -> Published | None:
    known = [each for each in cells if each is not None]
    if len(known) < len(cells):
        return None
    deviations = [each.deviation for each in known if each.deviation is not None]
    deviation = math.sqrt(sum(each**2 for each in deviations)) / len(known) if len(deviations) == len(known) else None
    return Published(float(np.mean([each.mean for each in known])), deviation)


def make_cell(own: Summary | None, published: Published | None) -> Cell:
    """Return a cell with its verdict, uncorrected for the other cells; `corrected_cells` applies the correction."""
    if own is None:
        return Cell(None, None, 0, published, None, "not run")
    if published is None:
        return Cell(*own, None, None, "not published")
    if own.deviation is None or not enough_seeds(own.seeds):
        return Cell(*own, published, None, TOO_FEW)
    interval_at = functools.partial(difference_interval, own, own.deviation, published)
    cell = Cell(*own, published, interval_at(), "", statistical_tests.p_value(interval_at))
    return dataclasses.replace(cell, verdict=verdict_of(cell))


def verdict_of(cell: Cell) -> str:
    """Return the verdict for the p value of a cell."""
    if not is_decided(cell.p):
        return NOISE
    return "above" if cell.interval and sum(cell.interval) > 0 else "below"


def corrected_cells(rows: Sequence[Mapping[str, Cell]]) -> list[dict[str, Cell]]:
    """Return the cells of all rows of a table with p values and verdicts after Holm's correction."""
    p_values = iter(corrected([cell.p for row in rows for cell in row.values()]))
    found = [{method: dataclasses.replace(cell, p=next(p_values)) for method, cell in row.items()} for row in rows]
    return [
        {
            method: cell if cell.p is None else dataclasses.replace(cell, verdict=verdict_of(cell))
            for method, cell in row.items()
        }
        for row in found
    ]


def difference_interval(
    own: Summary, deviation: float, published: Published, confidence: float = CONFIDENCE
) -> Interval:
    """Return Welch's interval of our mean minus the published one, with half a point for its rounding."""
    parts = [(deviation**2 / own.seeds, own.seeds - 1)]
    if published.deviation is not None:
        parts.append((published.deviation**2 / PUBLISHED_SEEDS, PUBLISHED_SEEDS - 1))
    low, high = statistical_tests.t_interval(own.mean - published.mean, parts, confidence)
    return Interval(low - ROUNDING, high + ROUNDING)


def emphasised(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return the cells of a row with the paper's bold and underlined marks, based on our rounded numbers.

    Only means of the same tasks are compared, because a mean without the hard tasks would be too high.
    """
    compared = compared_tasks(cells)
    known = {
        method: max(round(cell.mean), 0)
        for method, cell in cells.items()
        if cell.mean is not None and cell.tasks == compared
    }
    best = max(known.values(), default=0)
    marked = {}
    for method, cell in cells.items():
        bold = method in known and known[method] >= BOLD * best
        marked[method] = dataclasses.replace(cell, bold=bold, underlined=bold and method in ONE_STEP)
    return marked


def compared_tasks(cells: Mapping[str, Cell]) -> tuple[str, ...]:
    """Return the tasks on which the cells of a row are compared: the largest set, and of equals the most common one."""
    counts = Counter(cell.tasks for cell in cells.values() if cell.mean is not None)
    return max(counts, key=lambda tasks: (len(tasks), counts[tasks]), default=())
