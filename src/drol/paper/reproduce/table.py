"""The paper's two tables from whatever runs exist, each cell beside the published one, with a verdict."""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from drol.errors import unknown_name
from drol.experiments.results.merge import consistent, differences_in_circumstances
from drol.experiments.results.result import Result
from drol.paper.planned import CANDIDATES
from drol.paper.presets import TASKS
from drol.paper.published import (
    GENERAL_REMARKS,
    PUBLISHED_SEEDS,
    REMARKS,
    Published,
    family_cells,
    published_updates,
    task_cells,
)
from drol.paper.reproduce.experiments import COLUMNS, DEFAULT_K, TUNED, ladder_of
from drol.paper.reproduce.plan import family_of
from drol.paper.reproduce.scores import (
    candidate_means,
    choosing_tasks,
    chosen_candidates,
    finished_seeds,
    groups_by_settings,
    seed_scores,
    with_number,
)

TABLES = ("1", "full")
TITLES = {
    "bc": "BC", "iql": "IQL", "rebrac": "ReBRAC", "fawac": "FAWAC", "fbrac": "FBRAC", "ifql": "IFQL",
    "deflow": "DeFlow", "sorl": "SORL", "fql": "FQL", "drol": "DROL(16)", TUNED: "DROL*",
}  # fmt: skip
ONE_STEP = ("fql", "drol", TUNED)  # columns that the paper underlines where they are bold
BOLD = 0.95  # of the best score in the row
CONFIDENCE = 0.95
LEAST_LADDER = ladder_of("small")  # values of K that must have been tried before one of them is called tuned
ROUNDING = 0.5  # published numbers are whole

Scores = Mapping[tuple[str, str], Mapping[int, float]]  # task and column -> seed -> reported score


@dataclass(frozen=True)
class Cell:
    """A number of ours, the published one, and what the difference says."""

    mean: float | None  # None: not run
    deviation: float | None  # over seeds; None with one seed
    seeds: int
    published: Published | None
    interval: tuple[float, float] | None  # of the difference from the published one
    verdict: str  # "within noise", "above", "below", "not run", "not published" or "one seed"
    tasks: tuple[str, ...] = ()  # that the mean is of
    bold: bool = False
    underlined: bool = False


@dataclass(frozen=True)
class TableRow:
    """A family or a task: its cells by method."""

    name: str
    tasks: int  # that the family has in this table
    done: int  # of them that the methods which are compared were run on
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """A table and its footnotes."""

    which: str
    protocol: str
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


def make_table(results: Iterable[Result], which: str = "1", protocol: str = "fql") -> Table:
    """Make a table of the paper from results.

    Args:
        results: What `drol.collect_results` returned.
        which: "1" for the families, "full" for the tasks.
        protocol: "fql" (the mean of the last three evaluations on OGBench, the last on D4RL), "last" or "best".

    Returns:
        The table; `drol.paper.reproduce.render.render` turns it into text.
    """
    if which not in TABLES:
        raise unknown_name("table", which, TABLES)
    notes: list[str] = []
    scores = scores_by_cell(results, protocol, notes)
    tasks = {task for task, _ in scores}
    ours = [task for task in sorted(tasks) if task not in TASKS]
    names = [*TASKS, *ours]
    if which == "full":
        rows = [task_row(task, scores) for task in names]
        marked = {(family_of(row.name), method) for row in rows for method, cell in row.cells.items() if cell.published}
    else:
        families: dict[str, list[str]] = defaultdict(list)
        for task in names:
            families[family_of(task)].append(task)
        rows = [family_row(family, own, scores) for family, own in families.items()]
        marked = {(row.name, method) for row in rows for method, cell in row.cells.items() if cell.published}
        notes += [words for row in rows for words in run_in_part(row)]
    if not any(cell.mean is not None for row in rows for cell in row.cells.values()):
        notes.append("no finished run was found, so only the published numbers are shown; `drol paper run` makes runs")
    notes += [f"{key[0]}, {TITLES[key[1]]}: {words}" for key, words in REMARKS.items() if key in marked]
    return Table(which, protocol, tuple(rows), (*notes, *GENERAL_REMARKS, verdict_words()))


def verdict_words() -> str:
    """Return how verdicts are made."""
    return (
        f"a verdict compares two means by Welch's interval ({CONFIDENCE:.0%}, {PUBLISHED_SEEDS} published seeds, half "
        "a point for rounding): within noise if it holds 0, else above or below; one seed of ours has no verdict (?); "
        "the published deviation of a family is taken from those of its tasks, as of independent seeds"
    )


def scores_by_cell(results: Iterable[Result], protocol: str, notes: list[str]) -> Scores:
    """Return the reported score of each seed, by task and column, and add notes on what does not fit together."""
    results = consistent(dataclasses.replace(row, task=with_number(row.task)) for row in results)
    found, counted = {}, []
    for task in dict.fromkeys(row.task for row in results):
        for method in dict.fromkeys(row.method for row in results if row.task == task and row.method in TITLES):
            own = [row for row in results if (row.task, row.method, row.evaluation) == (task, method, "training")]
            groups = [each for each in groups_by_settings(own) if finished_seeds(each)]
            if not groups:
                continue
            if len(groups) > 1:
                notes.append(
                    f"{task}, {TITLES[method]}: runs of {len(groups)} settings or lengths; those with most seeds are "
                    f"taken ({groups[0][0].steps:,} updates); give their folders alone to choose others"
                )
            counted += groups[0]
            columns = {method: groups[0]} if method != "drol" else drol_columns(groups[0], results, task, notes)
            scores = {(task, column): seed_scores(rows, protocol) for column, rows in columns.items()}
            found |= {cell: own for cell, own in scores.items() if own}
    advice = "scores may differ for that reason alone; `drol results merge --keep-apart` separates them"
    notes += [f"{line}; {advice}" for line in differences_in_circumstances(counted)]
    notes += lengths_of_training(counted)
    return found


def drol_columns(rows: Sequence[Result], results: Sequence[Result], task: str, notes: list[str]) -> dict[str, list]:
    """Return the results that belong to DROL(16) and, once K has been chosen, to DROL*."""
    by_candidates: dict[int, list[Result]] = defaultdict(list)
    for row in rows:
        by_candidates[row.setting(CANDIDATES)].append(row)
    tuned = chosen_candidates(results, task, LEAST_LADDER)
    if tuned is not None:
        tried, where = candidate_means(results, task), " ".join(choosing_tasks(task))
        words = f"K* is {tuned}, the best of {', '.join(map(str, tried))} on {where}"
        notes += [words] if words not in notes else []
    columns = {"drol": by_candidates.get(DEFAULT_K, [])}
    return columns if tuned is None else columns | {TUNED: by_candidates.get(tuned, [])}


def lengths_of_training(rows: Iterable[Result]) -> list[str]:
    """Return a note if ours were trained for other numbers of updates than the published ones."""
    own = {row.steps for row in rows if row.task in TASKS and row.steps != published_updates(row.task)}
    if not own:
        return []
    lengths = " to ".join(f"{count:,}" for count in sorted({min(own), max(own)}))
    return [f"ours were trained for {lengths} updates, the published ones for 1,000,000 (D4RL: 500,000)"]


def task_row(task: str, scores: Scores) -> TableRow:
    cells = {}
    for method in COLUMNS:
        own = list(scores.get((task, method), {}).values())
        cells[method] = make_cell(summarised([own] if own else []), task_cells().get((task, method)))
    done = any(cell.mean is not None for cell in cells.values())
    return TableRow(task, 1, int(done), emphasised(cells))


def family_row(family: str, tasks: Sequence[str], scores: Scores) -> TableRow:
    """Return the row of a family: a cell is the mean over its tasks that were run.

    Beside a family that was run in part stands the mean of the published numbers of the same tasks.
    """
    cells = {}
    for method in COLUMNS:
        run = tuple(task for task in tasks if (task, method) in scores)
        published = mean_published([task_cells().get((task, method)) for task in run or tasks])
        printed = family_cells().get((family, method))
        if printed and len(run) in (0, len(tasks)):
            published = Published(printed.mean, published.deviation if published else printed.deviation)
        cell = make_cell(family_summary([scores[task, method] for task in run]), published)
        shown = printed if len(run) in (0, len(tasks)) else published
        cells[method] = dataclasses.replace(cell, published=shown, tasks=run)
    return TableRow(family, len(tasks), len(compared_tasks(cells)), emphasised(cells))


def compared_tasks(cells: Mapping[str, Cell]) -> tuple[str, ...]:
    """Return the tasks on which the cells of a row are compared: the most that were run, by the most methods."""
    counts = Counter(cell.tasks for cell in cells.values() if cell.mean is not None)
    return max(counts, key=lambda tasks: (len(tasks), counts[tasks]), default=())


def run_in_part(row: TableRow) -> list[str]:
    """Return a note if methods of a family were run on other of its tasks than those that are compared."""
    compared = compared_tasks(row.cells)
    others = [
        f"{TITLES[method]} ({len(cell.tasks)})"
        for method, cell in row.cells.items()
        if cell.mean is not None and cell.tasks != compared
    ]
    if not others:
        return []
    words = f"not of the same {len(compared)} tasks, and so not compared with the rest"
    return [f"{row.name}: {words}: {', '.join(others)}"]


class Summary(NamedTuple):
    """A mean over seeds, their deviation, and how many there are; no deviation with one."""

    mean: float
    deviation: float | None
    seeds: int


def summarised(tasks: Sequence[Sequence[float]]) -> Summary | None:
    """Return the mean over tasks of the means over their seeds; the deviation is that of independent tasks."""
    if not tasks:
        return None
    seeds = min(map(len, tasks))
    variances = [float(np.var(own, ddof=1)) for own in tasks] if seeds > 1 else []
    deviation = math.sqrt(sum(variances)) / len(tasks) if variances else None
    return Summary(float(np.mean([np.mean(own) for own in tasks])), deviation, seeds)


def family_summary(tasks: Sequence[Mapping[int, float]]) -> Summary | None:
    """Return the mean over tasks; where all have the same seeds, the deviation is over seeds of that mean."""
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
    """Return a cell with its verdict."""
    if own is None:
        return Cell(None, None, 0, published, None, "not run")
    if published is None:
        return Cell(*own, None, None, "not published")
    if own.deviation is None:
        return Cell(*own, published, None, "one seed")
    low, high = difference_interval(own, own.deviation, published)
    verdict = "above" if low > 0 else "below" if high < 0 else "within noise"
    return Cell(*own, published, (low, high), verdict)


def difference_interval(own: Summary, deviation: float, published: Published) -> tuple[float, float]:
    """Return Welch's interval of our mean minus the published one."""
    parts = [(deviation**2 / own.seeds, own.seeds - 1)]
    if published.deviation is not None:
        parts.append((published.deviation**2 / PUBLISHED_SEEDS, PUBLISHED_SEEDS - 1))
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / count for part, count in parts) if variance else 1.0
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(variance) + ROUNDING
    return own.mean - published.mean - half, own.mean - published.mean + half


def emphasised(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return the cells of a row with the paper's bold and underlined marks, by our numbers as they are printed.

    Only means of the same tasks are compared: one that lacks the hard ones is no better for it.
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
