"""The tables of docs/results.md, from results that are known."""

from dataclasses import replace

from made_results import made_group

from drol.paper.mechanism import MechanismRow
from drol.paper.reproduce.summary import (
    SEEDED,
    candidates_table,
    default_table,
    differences_table,
    order_table,
    ownership_table,
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
    assert found["IQL"][-1] == "better"
    assert found["FQL"][-1].startswith("underpowered: one seed")
    assert found["DROL(16)"] == ["3", "44", "40 to 48", "-", "-", "-"]
    assert found["FQL"][-2] == "-"  # an interval of its episodes would leave out what other seeds do
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
    assert [row[4] for row in table] == ["better", "underpowered: one seed; at least two of each are needed"]
    assert table[0][2:5] == table[0][5:]  # there is one evaluation


def test_what_one_checkpoint_cannot_tell_is_not_zero():
    row = MechanismRow("maze", "drol", 16, 0, 10, None, 10.0, 0.0, -0.3, 0.25, 0.2, 0.7)
    assert cells(ownership_table([row]))["maze"][2:] == ["-", "94%", "10", "25%", "0%", "-0.30"]


def test_an_order_of_tasks_with_one_seed_has_no_interval():
    rows = [*of_drol([10, 20]), *of_drol([30], task=OTHER), *made_group("iql", [40, 50], task=SEEDED)]
    found = cells(order_table(rows))
    assert list(found) == ["DROL(16)", "IQL"]  # of fewer tasks
    assert found["DROL(16)"] == ["2", "3", "45", "40", "-", "-"]
    assert found["IQL"][3:] == ["90", "80 to 100", "1.00"]
