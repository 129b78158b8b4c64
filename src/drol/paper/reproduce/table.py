"""The paper's two tables from whatever runs exist, each cell beside the published one, with a verdict."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from drol.errors import unknown_name
from drol.experiments.results.result import Result
from drol.paper.presets import TASKS
from drol.paper.published import (
    GENERAL_REMARKS,
    PUBLISHED_SEEDS,
    REMARKS,
    Published,
    family_cells,
    task_cells,
)
from drol.paper.reproduce.experiments import COLUMNS, DEFAULT_K, TUNED, ladder_of
from drol.paper.reproduce.plan import family_of
from drol.paper.reproduce.scores import chosen_candidates, seed_scores

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
    tasks: int = 1  # that the mean is of
    bold: bool = False
    underlined: bool = False


@dataclass(frozen=True)
class TableRow:
    """A family or a task: its cells by method."""

    name: str
    tasks: int  # that the family has in this table
    done: int  # of them with a run of every method that has one
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
    scores = scores_by_cell(list(results), protocol, notes)
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
        "a point for rounding): within noise if it holds 0, else above or below; a single seed of ours is given the "
        "published deviation"
    )


def scores_by_cell(results: Sequence[Result], protocol: str, notes: list[str]) -> Scores:
    """Return the reported score of each seed, by task and column."""
    groups: dict[tuple[str, str], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for task, own in by_task(results).items():
        tuned = chosen_candidates(results, task, LEAST_LADDER) if any(row.method == "drol" for row in own) else None
        for row in own:
            for column in columns_of(row, tuned):
                groups[task, column][row.settings_id].append(row)
    found = {}
    for (task, column), settings in groups.items():
        scores = {each: seed_scores(rows, protocol) for each, rows in settings.items()}
        best = max(scores, key=lambda each: len(scores[each]))
        if sum(bool(each) for each in scores.values()) > 1:
            notes.append(
                f"{task}, {TITLES[column]}: runs of {len(scores)} settings; those of settings {best} are taken, "
                "give their folders alone to choose others"
            )
        if scores[best]:
            found[task, column] = scores[best]
            notes += mixed_circumstances(task, column, settings[best])
    return found


def by_task(results: Iterable[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for row in results:
        groups[row.task].append(row)
    return groups


def columns_of(row: Result, tuned: int | None) -> list[str]:
    """Return the columns of the table that a result belongs to."""
    if row.evaluation != "training" or row.method not in COLUMNS:
        return []
    if row.method != "drol":
        return [row.method]
    candidates = row.setting("num_candidates")
    return ["drol"] * (candidates == DEFAULT_K) + [TUNED] * (candidates == tuned)


def mixed_circumstances(task: str, column: str, rows: Sequence[Result]) -> list[str]:
    """Return a note for each thing in which the runs of a cell differ though they should not."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, value in row.circumstances.items():
            values[name].add(value)
    return [
        f"{task}, {TITLES[column]}: its seeds differ in {name} ({', '.join(sorted(found))}); "
        "`drol results merge --keep-apart` separates them"
        for name, found in values.items()
        if len(found) > 1
    ]


def task_row(task: str, scores: Scores) -> TableRow:
    cells = {}
    for method in COLUMNS:
        own = list(scores.get((task, method), {}).values())
        cells[method] = make_cell(own, task_cells().get((task, method)))
    done = any(cell.mean is not None for cell in cells.values())
    return TableRow(task, 1, int(done), emphasised(cells))


def family_row(family: str, tasks: Sequence[str], scores: Scores) -> TableRow:
    """Return the row of a family: a cell is the mean over its tasks that were run.

    Beside a family that was run in part stands the mean of the published numbers of the same tasks.
    """
    cells, done = {}, 0
    for method in COLUMNS:
        run = [task for task in tasks if (task, method) in scores]
        done = max(done, len(run))
        published = family_cells().get((family, method))
        if run and len(run) < len(tasks):
            published = mean_published([task_cells().get((task, method)) for task in run])
        cell = make_cell(family_means([scores[task, method] for task in run]), published)
        cells[method] = dataclasses.replace(cell, tasks=len(run))
    return TableRow(family, len(tasks), done, emphasised(cells))


def run_in_part(row: TableRow) -> list[str]:
    """Return a note if methods of a family were run on fewer of its tasks than others."""
    fewer = [f"{TITLES[method]} ({cell.tasks})" for method, cell in row.cells.items() if 0 < cell.tasks < row.done]
    if not fewer:
        return []
    return [f"{row.name}: of fewer than {row.done} tasks, and so not compared with the others: {', '.join(fewer)}"]


def family_means(tasks: Sequence[Mapping[int, float]]) -> list[float]:
    """Return the mean over tasks for each seed that all of them have; over all scores if they share none."""
    if not tasks:
        return []
    shared = set.intersection(*({*task} for task in tasks))
    if len(shared) > 1 or all({*task} == shared for task in tasks):
        return [float(np.mean([task[seed] for task in tasks])) for seed in sorted(shared)]
    return [float(np.mean([np.mean(list(task.values())) for task in tasks]))]


def mean_published(cells: Sequence[Published | None]) -> Published | None:
    known = [each for each in cells if each is not None]
    if len(known) < len(cells):
        return None
    deviations = [each.deviation for each in known if each.deviation is not None]
    deviation = math.sqrt(sum(each**2 for each in deviations)) / len(known) if len(deviations) == len(known) else None
    return Published(float(np.mean([each.mean for each in known])), deviation)


def make_cell(scores: Sequence[float], published: Published | None) -> Cell:
    """Return a cell with its verdict."""
    if not scores:
        return Cell(None, None, 0, published, None, "not run")
    mean = float(np.mean(scores))
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    if published is None:
        return Cell(mean, deviation, len(scores), None, None, "not published")
    interval = difference_interval(mean, deviation, len(scores), published)
    if interval is None:
        return Cell(mean, deviation, len(scores), published, None, "one seed")
    low, high = interval
    verdict = "above" if low > 0 else "below" if high < 0 else "within noise"
    return Cell(mean, deviation, len(scores), published, interval, verdict)


def difference_interval(
    mean: float, deviation: float | None, seeds: int, published: Published
) -> tuple[float, float] | None:
    """Return Welch's interval of our mean minus the published one; None where no deviation is known at all."""
    own = published.deviation if deviation is None else deviation
    if own is None:
        return None
    parts = [(own**2 / seeds, max(seeds - 1, 1) if deviation is not None else PUBLISHED_SEEDS - 1)]
    if published.deviation is not None:
        parts.append((published.deviation**2 / PUBLISHED_SEEDS, PUBLISHED_SEEDS - 1))
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / count for part, count in parts) if variance else 1.0
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(variance) + ROUNDING
    return mean - published.mean - half, mean - published.mean + half


def emphasised(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return the cells of a row with the paper's bold and underlined marks, by our numbers as they are printed.

    Only those of the most tasks are compared: a mean that lacks the hard ones is no better for it.
    """
    most = max(cell.tasks for cell in cells.values())
    known = {
        method: max(round(cell.mean), 0)
        for method, cell in cells.items()
        if cell.mean is not None and cell.tasks == most
    }
    best = max(known.values(), default=0)
    marked = {}
    for method, cell in cells.items():
        bold = method in known and known[method] >= BOLD * best
        marked[method] = dataclasses.replace(cell, bold=bold, underlined=bold and method in ONE_STEP)
    return marked
