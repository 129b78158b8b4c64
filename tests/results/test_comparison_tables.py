from pathlib import Path

import pytest
from made_results import made_group

from drol.results.compare import compare
from drol.results.comparison_tables import overall_table, print_comparison, task_table
from drol.results.result_files import write_results


def compared(folder, *results):
    write_results(results, folder / "results.csv")
    return compare(folder / "results.csv")


def test_a_line_for_each_group_with_the_verdict_last(tmp_path):
    comparison = compared(tmp_path, *made_group("fql", [10, 20]), *made_group("drol", [45], step=5))
    titles, (base, ours) = task_table(comparison, "maze")
    values = dict(zip(titles, base, strict=True))
    assert (values["group"], values["seeds"], values["episodes"], values["updates"]) == ("fql", "2", "50", "10")
    assert (values["mean"], values["deviation"], values["verdict"]) == ("30.0", "14.1", "baseline")
    values = dict(zip(titles, ours, strict=True))
    assert (values["mean"], values["deviation"], values["difference"]) == ("90.0", "-", "+60.0")
    assert (values["p (Holm)"], values["verdict"]) == ("-", "too few seeds: each side needs 3")


def test_p_and_the_seeds_that_are_asked_for_have_columns(tmp_path):
    write_results([*made_group("fql", [35, 12, 20]), *made_group("drol", [10, 40, 30])], tmp_path / "results.csv")
    titles, (base, ours) = task_table(compare(tmp_path / "results.csv", difference=20), "maze")
    assert titles[-3:] == ("p (Holm)", "seeds for 20", "verdict")
    assert base[-3:] == ("", "", "baseline")
    assert ours[-3:] == ("0.717", "31", "underpowered: could detect 83.5 or more")


def test_all_tasks_have_a_line_for_each_label(tmp_path):
    comparison = compared(tmp_path, *made_group("fql", [10, 20]), *made_group("drol", [45, 50], task="cube"))
    _, lines = overall_table(comparison)
    assert [(line[0], line[1], line[2], float(line[3])) for line in lines] == [
        ("fql", "1", "2", pytest.approx(30)),
        ("drol", "1", "2", pytest.approx(95)),
    ]


def test_the_text_has_all_tasks_in_aligned_columns_and_the_notes(tmp_path):
    comparison = compared(tmp_path, *made_group("fql", [10, 20]), *made_group("drol bc", [45, 50], task="cube"))
    text = print_comparison(comparison)
    assert text.startswith("maze: success (%), last evaluation\ngroup  seeds  episodes")
    assert "\n\ncube: success (%), last evaluation\n" in text
    assert "\n\nall tasks; P(better) is the probability that a run is better than a run of fql\n" in text
    assert text.splitlines()[-2].startswith("note: no IQM: the groups have different tasks")
    assert text.splitlines()[-1] == "note: drol bc on cube is not compared: fql has no result on this task"
    titles, line = text.splitlines()[1:3]
    assert titles.index("mean") + len("mean") == line.index("30.0") + len("30.0")


def test_the_table_in_the_document_is_what_is_printed(tmp_path):
    groups = [*made_group("fql", [30, 33, 28]), *made_group("drol", [46, 44, 47])]
    groups += [*made_group("iql", [29, 36, 21]), *made_group("bc", [10])]
    document = Path(__file__).parents[2] / "docs" / "comparing.md"
    assert f"```\n{print_comparison(compared(tmp_path, *groups))}\n```" in document.read_text()
