"""The tables of docs/results.md, from results that are known."""

from dataclasses import replace

import pytest
from made_results import made_group

from drol_reproduction.summary import (
    SEEDED,
    candidates_table,
    default_table,
    differences_table,
    order_table,
    scores_table,
)

OTHER = SEEDED.replace("task1", "task2")


def cells(table: str) -> dict[str, list[str]]:
    """The rows of a Markdown table by their first cell."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def of_drol(successes, candidates=16, task=SEEDED):
    return made_group("drol", successes, task=task, settings={"num_candidates": candidates})


def test_methods_are_compared_with_drol_on_the_task_that_has_seeds():
    rows = [*of_drol([20, 22, 24]), *of_drol([0, 0, 0], 64), *made_group("iql", [45, 46, 47], task=SEEDED)]
    rows += [*made_group("fql", [50], task=SEEDED), *made_group("bc", [50, 50], task=OTHER)]
    found = cells(differences_table(rows))
    assert list(found) == ["FQL", "IQL", "DROL(16)"]  # the best first
    assert found["IQL"][:4] == ["3", "92", "90 to 94", "+48"]
    assert found["IQL"][-2:] == ["<0.001", "better"]
    assert found["FQL"][-3:] == ["-", "-", "too few seeds: each side needs 3"]
    assert found["DROL(16)"] == ["3", "44", "40 to 48", "-", "-", "-", "-"]
    assert cells(differences_table(made_group("iql", [50, 50], task=SEEDED))) == {}
    other = made_group("iql", [0], task=SEEDED, settings={"discount": 0.5})
    unfinished = made_group("bc", [50, 50], task=SEEDED, step=10, steps=20)
    assert cells(differences_table([*rows, *other, *unfinished])) == found


def test_best_of_several_says_of_how_many_seeds_it_is():
    figures = {"routed_bc_loss": 0.1, "candidate_distance": 0.2, "candidate_divergence": 0.3}
    rows = [
        row for k in (4, 16) for row in made_group("drol", [25, 30], settings={"num_candidates": k}, figures=figures)
    ]
    rows += [replace(row, evaluation="extra", best_of=4) for row in rows[:3]]
    assert [line.split(" | ")[5] for line in candidates_table(rows).splitlines()[2:]] == ["55 (50 to 60)", "50, 1 seed"]


def test_each_k_is_compared_with_the_default_where_both_were_trained_to_their_end():
    rows = [*of_drol([20, 22, 24]), *of_drol([45, 46, 47], 4), *of_drol([50], 64), *of_drol([50, 50], 4, OTHER)]
    rows += made_group("drol", [50, 50], task=SEEDED, settings={"num_candidates": 1}, step=10, steps=20)
    table = [line.strip("| ").split(" | ") for line in default_table(rows).splitlines()[2:]]
    assert [row[:3] for row in table] == [
        ["pointmaze-medium-task1", "4", "+48"],
        ["pointmaze-medium-task1", "64", "+56"],
    ]
    assert [row[5] for row in table] == ["better", "too few seeds: each side needs 3"]
    assert table[0][2:6] == table[0][6:]  # there is one evaluation


def test_k_is_tested_as_often_as_the_table_has_comparisons():
    """Four values of K by two endpoints are eight comparisons."""
    rows = [*of_drol([20, 33, 30]), *(row for count in (1, 4, 8, 64) for row in of_drol([40, 49, 45], count))]
    (one, *_), alone = (
        [line.strip("| ").split(" | ") for line in default_table(each).splitlines()[2:]] for each in (rows, rows[:6])
    )
    assert float(one[4]) == pytest.approx(4 * float(alone[0][4]), abs=0.01)
    assert one[5].startswith("underpowered: could detect")


def test_methods_of_other_tasks_or_seeds_have_no_interquartile_means():
    rows = [*of_drol([10, 20]), *of_drol([30], task=OTHER), *made_group("iql", [40, 50], task=SEEDED)]
    table, note = order_table(rows).split("\n\n")
    assert cells(table) == {"DROL(16)": ["2", "3", "45", "-"], "IQL": ["1", "2", "90", "1.00"]}
    assert note.startswith("No IQM: the groups have different tasks or numbers of seeds")


def test_an_order_of_tasks_with_too_few_seeds_has_no_interval():
    rows = [*of_drol([10, 20]), *made_group("iql", [40, 50], task=SEEDED)]
    assert cells(order_table(rows))["IQL"] == ["1", "2", "90", "90", "-", "1.00"]
    rows = [*of_drol([10, 20, 30]), *made_group("iql", [40, 50, 45], task=SEEDED)]
    assert cells(order_table(rows))["IQL"] == ["1", "3", "90", "90", "80 to 100", "1.00"]


def test_the_column_of_a_tuned_k_says_on_which_seeds_it_was_selected():
    rows = [row for count in (1, 4, 16, 64) for row in of_drol([count // 2], count)]
    assert "| DROL* (K selected on these seeds) |" in scores_table(rows)
