"""The tables of docs/results.md, from results that are known."""

from made_results import made_group

from drol.paper.reproduce.summary import SEEDED, differences_table, order_table

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
    assert cells(differences_table(made_group("iql", [50, 50], task=SEEDED))) == {}


def test_an_order_of_tasks_with_one_seed_has_no_interval():
    rows = [*of_drol([10, 20]), *of_drol([30], task=OTHER), *made_group("iql", [40, 50], task=SEEDED)]
    found = cells(order_table(rows))
    assert list(found) == ["IQL", "DROL(16)"]
    assert found["DROL(16)"] == ["2", "3", "45", "40", "-", "-"]
    assert found["IQL"][3:] == ["90", "80 to 100", "1.00"]
