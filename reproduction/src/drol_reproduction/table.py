"""Make the paper's two tables from the existing runs, with the published number and a verdict for each cell."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drol.errors import unknown_name
from drol.planning.planned_run import CANDIDATES
from drol.presets.settings import TASKS
from drol.results.merge import consistent, differences_in_circumstances
from drol.results.result import Result
from drol.results.statistical_tests import CONFIDENCE
from drol.results.verdicts import LEAST_SEEDS
from drol_reproduction.cells import (
    Cell,
    compared_tasks,
    corrected_cells,
    emphasised,
    family_summary,
    make_cell,
    mean_published,
    summarised,
)
from drol_reproduction.experiments import COLUMNS, DEFAULT_K, TUNED, ladder_of
from drol_reproduction.plan import family_of
from drol_reproduction.published import (
    GENERAL_REMARKS,
    PUBLISHED_SEEDS,
    REMARKS,
    Published,
    family_cells,
    published_updates,
    task_cells,
)
from drol_reproduction.scores import (
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
CHOSEN_ON_ITSELF = (
    "DROL*: K was selected on the reported seeds, by the scores that the column shows, so it is a maximum over K and "
    "flatters itself; the paper does not say that its K* was chosen on other seeds"
)
LEAST_LADDER = ladder_of("small")  # values of K that must have been tried before the protocol chooses one of them

Scores = Mapping[tuple[str, str], Mapping[int, float]]  # task and column -> seed -> reported score


@dataclass(frozen=True)
class TableRow:
    """A family or a task: its cells by method."""

    name: str
    tasks: int  # number of the family's tasks in this table
    done: int  # number of these tasks in the comparison of methods
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
        results: The return value of `drol.collect_results`.
        which: "1" for the families, "full" for the tasks.
        protocol: "fql" (the mean of the last three evaluations on OGBench, the last on D4RL), "last" or "best".

    Returns:
        The table; `drol_reproduction.render.render` turns it into text.
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
    cells = corrected_cells([row.cells for row in rows])
    rows = [dataclasses.replace(row, cells=own) for row, own in zip(rows, cells, strict=True)]
    return Table(which, protocol, tuple(rows), (*notes, CHOSEN_ON_ITSELF, *GENERAL_REMARKS, verdict_words()))


def verdict_words() -> str:
    """Return the footnote that explains the verdicts."""
    return (
        f"a verdict compares two means by Welch's test ({PUBLISHED_SEEDS} published seeds, half a point for rounding), "
        f"with Holm's correction for all cells of the table: above or below if the corrected p is below "
        f"{1 - CONFIDENCE:.2g}, else within noise; fewer than {LEAST_SEEDS} seeds of ours have no verdict (?); "
        "the published deviation of a family is taken from those of its tasks, as of independent seeds"
    )


def scores_by_cell(results: Iterable[Result], protocol: str, notes: list[str]) -> Scores:
    """Return the reported score of each seed, by task and column, and add notes on inconsistent results."""
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
        words = f"K* is {tuned}, the best of {', '.join(map(str, tried))} on {where}, by the seeds that are reported"
        notes += [words] if words not in notes else []
    columns = {"drol": by_candidates.get(DEFAULT_K, [])}
    return columns if tuned is None else columns | {TUNED: by_candidates.get(tuned, [])}


def lengths_of_training(rows: Iterable[Result]) -> list[str]:
    """Return a note if our runs have other numbers of updates than the published ones."""
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
    """Return the row of a family; a cell is the mean over the tasks that were run.

    If only some tasks were run, the published number is the mean over the same tasks.
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


def run_in_part(row: TableRow) -> list[str]:
    """Return a note if some methods of a family ran on other tasks than the compared tasks."""
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
