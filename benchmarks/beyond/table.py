"""The study of docs/beyond.md: one setting for all tasks against the best of a grid over K and the cloning weight.

    python benchmarks/beyond/table.py results/paper_small.csv results/beyond.csv --document docs/beyond.md

The second file holds what `drol sweep results` wrote for the sweeps of this folder, merged by `drol results merge`. The
best cell of the grid is chosen by its own mean, which flatters it.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from drol.experiments.compare.groups import Group, make_groups
from drol.experiments.compare.statistics import bootstrap_interval, mean_and_deviation
from drol.experiments.documents import fill_document
from drol.experiments.results.files import read_results
from drol.experiments.results.result import Result
from drol.paper.presets import settings

COMMAND = "python benchmarks/beyond/table.py"
OURS, GRID, ORACLE = "drol-auto", "drol", "best of the grid"
ALLOWED = 5.0  # points that ours may be below the best of the grid
DEVELOPED = "pointmaze-medium-navigate-singletask-task1-v0"  # where candidates were tried, and choosing among draws
FIGURES = ("routed_bc_loss", "single_sample_error")
DRAWN = [(1, "mean"), (4, "mean"), (16, "mean"), (64, "mean"), (4, "min"), (16, "min"), (64, "min")]


def columns_of(groups: list[Group]) -> dict[str, Group]:
    """Return what stands beside each other for one task, by the name of its column."""
    methods = {group.rows[0].method: group for group in groups}
    found = {name: group for name, group in methods.items() if name == OURS or not name.startswith(GRID)}
    cells = [group for group in groups if group.rows[0].method == GRID]
    weight = settings(groups[0].task, GRID, preset="small").algorithm.to_dict()["bc_weight"]
    for cell in cells:
        if (cell.rows[0].setting("num_candidates"), cell.rows[0].setting("bc_weight")) == (16, weight):
            found["DROL(16)"] = cell
    if cells:
        found[ORACLE] = max(cells, key=lambda cell: cell.scores.mean())
    return found


def words(group: Group | None, name: str) -> str:
    """Return a cell: mean, deviation, number of seeds and, of the grid, which cell it is."""
    if group is None:
        return "-"
    mean, deviation = mean_and_deviation(group.scores)
    text = f"{mean:.0f}" + (f" ± {deviation:.0f}" if len(group.scores) > 1 else "") + f" ({len(group.scores)})"
    row = group.rows[0]
    return f"{text}, K {row.setting('num_candidates')}, {row.setting('bc_weight'):g}" if name == ORACLE else text


def tables(groups: list[Group]) -> dict[str, str]:
    """Return the document's tables."""
    tasks = {
        task: columns_of([each for each in groups if each.task == task]) for task in sorted({g.task for g in groups})
    }
    first = ["DROL(16)", ORACLE, OURS]
    names = first + sorted({name for columns in tasks.values() for name in columns} - set(first))
    lines = ["| task | " + " | ".join(names) + " |", "| --- " * (1 + len(names)) + "|"]
    for task, columns in tasks.items():
        lines.append(f"| {task} | " + " | ".join(words(columns.get(name), name) for name in names) + " |")
    return {"scores": "\n".join(lines), "verdict": verdict(tasks)}


def verdict(tasks: dict[str, dict[str, Group]]) -> str:
    """Return whether ours is what the study looks for, in words."""
    both = {task: columns for task, columns in tasks.items() if {OURS, "DROL(16)", ORACLE} <= set(columns)}
    if not both:
        return f"No task has runs of {OURS}, of DROL(16) and of the grid yet."
    below = {task: float(columns[ORACLE].scores.mean() - columns[OURS].scores.mean()) for task, columns in both.items()}
    worse = [f"{task} ({points:.0f})" for task, points in below.items() if points > ALLOWED]

    def difference(ours: list, other: list) -> float:
        return float(np.mean([np.mean(a) - np.mean(b) for a, b in zip(ours, other, strict=True)]))

    pair = [[columns[name].scores for columns in both.values()] for name in (OURS, "DROL(16)")]
    low, high = bootstrap_interval(difference, *pair)
    seeds = min(len(columns[name].scores) for columns in both.values() for name in (OURS, "DROL(16)"))
    narrow = "; too narrow, because tasks with one seed add nothing to it" if seeds < 2 else ""
    return (
        f"Over the {len(both)} tasks that have all three, {OURS} is {difference(*pair):+.1f} points from DROL(16) "
        f"(95% interval over seeds {low:+.1f} to {high:+.1f}{narrow}). More than {ALLOWED:.0f} points below the best "
        f"of the grid on: {', '.join(worse) or 'none'}."
    )


def tried_table(groups: list[Group]) -> str:
    """Return the scores of DROL and of changes of it over the training, and how far their actions end from the data."""
    lines = ["| method | seed: score at every evaluation | winner to data | random draw to data |", "| --- " * 4 + "|"]
    for group in groups:
        if group.task != DEVELOPED or not group.rows[0].method.startswith(GRID):
            continue
        seeds = {seed: [row for row in group.rows if row.seed == seed and row.step] for seed in group.chosen}
        scores = "; ".join(f"{seed}: " + " ".join(f"{row.score:.0f}" for row in rows) for seed, rows in seeds.items())
        ends = [np.mean([rows[-1].figures[name] for rows in seeds.values()]) for name in FIGURES]
        lines.append(f"| {group.label} | {scores} | " + " | ".join(f"{end:.2f}" for end in ends) + " |")
    return "\n".join(lines)


def drawn_table(results: Iterable[Result]) -> str:
    """Return the scores of DROL's last policies where the critics choose among N draws, by K and seed."""
    weight = settings(DEVELOPED, GRID, preset="small").algorithm.to_dict()["bc_weight"]
    found: dict[tuple[int, int], dict[tuple[int, str], float]] = {}
    for row in results:
        if (row.task, row.method) == (DEVELOPED, GRID) and row.step == row.steps and row.setting("bc_weight") == weight:
            way = (row.best_of, row.setting("best_of_aggregation") if row.best_of > 1 else "mean")
            found.setdefault((row.setting("num_candidates"), row.seed), {})[way] = row.score
    names = ["one pass", *(f"best of {count} by {how}" for count, how in DRAWN[1:])]
    lines = ["| K | seed | " + " | ".join(names) + " |", "| --- " * (2 + len(names)) + "|"]
    for (candidates, seed), scores in sorted(found.items()):
        if len(scores) > 1:
            cells = [f"{scores[way]:.0f}" if way in scores else "-" for way in DRAWN]
            lines.append(f"| {candidates} | {seed} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def made_tables(paths: Iterable[Path]) -> dict[str, str]:
    """Return all that is made of some files of results, by the names of the marks."""
    results = [row for path in paths for row in read_results(path)]
    rows = [row for row in results if row.evaluation == "training"]
    finished = {(row.group, row.seed) for row in rows if row.step == row.steps}
    groups = make_groups([row for row in rows if (row.group, row.seed) in finished], "last3")
    return tables(groups) | {"tried": tried_table(groups), "drawn": drawn_table(results)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--document", type=Path)
    parsed = parser.parse_args()
    made = made_tables(parsed.results)
    print("\n\n".join(made.values()))
    if parsed.document:
        fill_document(parsed.document, COMMAND, made)


if __name__ == "__main__":
    main()
