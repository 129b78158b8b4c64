import csv
import re
from collections import defaultdict

import pytest
from shared_files import shared

from drol.algorithms import known_algorithms
from drol.presets.paper_hyperparameters import DROL
from drol.presets.settings import METHODS, TASKS, task_settings
from drol_reproduction import published
from drol_reproduction.bench.methods import CANDIDATES
from drol_reproduction.experiments import COLUMNS, short_name
from drol_reproduction.plan import family_of
from drol_reproduction.published import (
    GENERAL_REMARKS,
    REMARKS,
    candidate_curves,
    family_cells,
    sensitivity,
    task_cells,
)
from drol_reproduction.published.times import ACTION, TRAINING_STEP
from drol_reproduction.scores import choosing_tasks

LARGE = "antmaze-large-navigate-singletask-task1-v0"


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


def table_at_panel(panel):
    """The table's number for DROL(16) that a panel of figure 4 shows; Adroit's panels are means of three datasets."""
    tasks = [panel] if "-" in panel else [f"{panel}-{data}-v1" for data in ("human", "cloned", "expert")]
    return sum(task_cells()[task, "drol"].mean for task in tasks) / len(tasks)


def test_the_remarks_name_all_differences_between_figure_4_and_the_table():
    remark = next(each for each in GENERAL_REMARKS if each.startswith("figure 4 and the table differ"))
    pairs = [(curve[16], table_at_panel(panel)) for panel, curve in sensitivity().items()]
    different = {f"{figure:.0f} and {table:.0f}" for figure, table in pairs if abs(figure - table) > 4.5}
    assert different == set(re.findall(r"\d+ and \d+", remark))
    assert len(different) == 8


def test_adroits_panels_are_means_of_three_datasets_and_not_the_titled_one():
    remark = next(each for each in GENERAL_REMARKS if "Adroit" in each)
    hands = ("pen", "door", "hammer", "relocate")
    assert ", ".join(f"{sensitivity()[hand][16]:.0f}" for hand in hands[:3]) in remark
    assert ", ".join(f"{task_cells()[f'{hand}-expert-v1', 'drol'].mean:.0f}" for hand in hands[:3]) in remark
    for hand in hands[1:]:
        assert table_at_panel(hand) == pytest.approx(sensitivity()[hand][16], abs=1)


def test_the_remarks_on_single_families_are_true():
    discounts = {method: task_settings(LARGE, method).hyperparameters.get("discount") for method in METHODS}
    assert discounts.pop("drol") == 0.995
    assert {*discounts.values()} <= {0.99, None}
    assert DROL["antmaze-giant"][1] == 1
    assert [family_cells()["antmaze-giant", method].mean for method in ("drol", "drol*")] == [3, 45]
    assert {DROL[row][1] for row in DROL if row.startswith(("antmaze-umaze", "antmaze-medium-", "antmaze-large-"))} == {
        16
    }
    losses = candidate_curves()["antmaze-giant-navigate-singletask-task3-v0"]["routed_bc_loss"]
    assert losses[4] > losses[2]
    puzzle = [task for task in TASKS if task.startswith("puzzle-3x3")]
    assert all(task_cells()[task, "drol"] == task_cells()[task, "drol*"] for task in puzzle)
    said = [("puzzle-3x3", "drol"), ("antmaze-large", "drol"), ("antmaze-giant", "drol*"), ("antmaze (D4RL)", "drol*")]
    assert all(key in REMARKS for key in said)


def test_the_remark_on_panels_of_other_tasks_is_true():
    remark = next(each for each in GENERAL_REMARKS if "does not choose K" in each)
    panels = [panel for panel in sensitivity() if "singletask" in panel]
    others = {panel for panel in panels if choosing_tasks(panel) != (panel,)}
    assert {short_name(panel).replace("-task", " task ") for panel in others} == set(
        re.findall(r"[\w-]+ task \d", remark)
    )
    curve = sensitivity()["cube-single-play-singletask-task1-v0"]
    assert [round(curve[1]), round(curve[16])] == [86, 98]


def test_the_source_of_the_points_is_named():
    assert "k_sweep_representative.png" in (published.__doc__ or "")


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


def test_published_times_are_of_methods_that_drol_bench_measures():
    assert {name.split(" ")[0] for name in TRAINING_STEP} <= {*known_algorithms()}
    assert {f"drol K={count}" for count in CANDIDATES} >= {name for name in TRAINING_STEP if "K=" in name}
    assert {*ACTION} <= {*known_algorithms()}
