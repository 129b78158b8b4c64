import csv
import re
from collections import defaultdict

import pytest
from shared_files import shared

from drol.paper.presets import TASKS
from drol.paper.published import REMARKS, candidate_curves, family_cells, sensitivity, task_cells
from drol.paper.reproduce.experiments import COLUMNS
from drol.paper.reproduce.plan import family_of


def test_every_printed_cell_is_there():
    assert {task for task, _ in task_cells()} == {*TASKS}
    assert {method for _, method in task_cells()} == {*COLUMNS}
    assert len(task_cells()) == 68 * 11 - 28  # SORL was not run on the puzzles and on D4RL
    assert len(family_cells()) == 12 * 11 - 4
    assert family_cells()["antmaze-giant", "drol*"] == (45, 24)
    assert task_cells()["antmaze-large-navigate-singletask-task1-v0", "rebrac"] == (91, 10)
    assert family_cells()["adroit (D4RL)", "bc"].deviation is None


def test_a_family_is_the_mean_of_its_tasks_where_no_remark_says_otherwise():
    means = defaultdict(list)
    for (task, method), cell in task_cells().items():
        means[family_of(task), method].append(cell.mean)
    assert means.keys() == family_cells().keys()
    off = {key: abs(sum(own) / len(own) - family_cells()[key].mean) for key, own in means.items()}
    assert {key for key, value in off.items() if value > 0.61} == {
        ("antsoccer-arena", "deflow"),
        ("cube-double", "sorl"),
        ("antmaze (D4RL)", "rebrac"),
    }
    assert {key for key, value in off.items() if value > 0.61} <= REMARKS.keys()


def test_the_curves_that_were_read_off():
    assert len(sensitivity()) == 20
    assert sensitivity()["cube-single-play-singletask-task1-v0"] == {1: 86, 2: 87, 4: 91, 8: 98, 16: 98, 32: 93}
    curves = candidate_curves()["cube-double-play-singletask-task3-v0"]
    assert curves["candidate_distance"][64] == 0.211
    assert 16 not in curves["routed_bc_loss"]  # hidden in the figure


def test_the_printed_claims_hold():
    ogbench = {family_of(task) for task in TASKS if task.endswith("-v0")}
    for column, wins in (("drol", 6), ("drol*", 9)):
        pairs = [(family_cells()[family, column].mean, family_cells()[family, "fql"].mean) for family in ogbench]
        assert sum(ours >= theirs for ours, theirs in pairs) == wins


@pytest.mark.parametrize(("name", "own"), [("paper_results", task_cells), ("paper_groups", family_cells)])
def test_the_files_are_those_that_were_transcribed_from_the_paper(name, own):
    names = {"DROL(16)": "drol", "DROL*": "drol*"}
    with shared(f"paper/{name}.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["mean"]]
    found = sorted((names.get(row["method"], row["method"].lower()), float(row["mean"])) for row in rows)
    assert found == sorted((method, cell.mean) for (_, method), cell in own().items())
    assert not [row for row in rows if not re.fullmatch(r"-?\d+(\.\d+)?", row["mean"])]
