import csv
import io
import math
import statistics

import pytest
from made_results import made_result

from drol.errors import InputError
from drol_reproduction.experiments import COLUMNS
from drol_reproduction.published import Published
from drol_reproduction.render import STYLES, render
from drol_reproduction.table import make_table

CUBE = "cube-single-play-singletask-task{}-v0"
SECOND = CUBE.format(2)


def finished(score, task=SECOND, method="fql", seed=0, **changes):
    return made_result(task=task, method=method, seed=seed, step=30, steps=30, score=score, **changes)


def row_of(table, name):
    return next(row for row in table.rows if row.name == name)


def test_a_cell_has_the_mean_and_deviation_over_seeds():
    table = make_table([finished(90, seed=0), finished(96, seed=1)], "full")
    cell = row_of(table, CUBE.format(2)).cells["fql"]
    assert (cell.mean, cell.seeds) == (93, 2)
    assert cell.deviation == pytest.approx(math.sqrt(18))
    assert cell.published == (97, 2)
    assert row_of(table, CUBE.format(1)).cells["fql"].verdict == "not run"


def test_a_family_that_was_run_in_part_stands_beside_the_published_numbers_of_the_same_tasks():
    rows = [finished(80, CUBE.format(1)), finished(90, CUBE.format(2))]
    row = row_of(make_table(rows, "1"), "cube-single")
    assert (row.done, row.tasks, row.cells["fql"].mean) == (2, 5, 85)
    assert row.cells["fql"].published == Published(97, math.sqrt(2**2 + 2**2) / 2)
    all_five = [finished(90, CUBE.format(number)) for number in range(1, 6)]
    assert row_of(make_table(all_five, "1"), "cube-single").cells["fql"].published == (96, 1)


def test_a_method_that_was_run_on_fewer_tasks_is_not_compared_with_the_others():
    rows = [finished(60, CUBE.format(task)) for task in (1, 2)]
    easy = finished(99, CUBE.format(1), method="drol", settings={"num_candidates": 16})
    table = make_table([*rows, easy], "1")
    cells = row_of(table, "cube-single").cells
    assert [(len(cells[name].tasks), cells[name].bold) for name in ("drol", "fql")] == [(1, False), (2, True)]
    assert "cube-single: not of the same 2 tasks, and so not compared with the rest: DROL(16) (1)" in table.notes
    hard = finished(99, CUBE.format(2), method="drol", settings={"num_candidates": 16})
    table = make_table([*rows, easy, hard], "1")
    assert row_of(table, "cube-single").cells["drol"].bold
    assert not any("not compared" in note for note in table.notes)


def test_methods_that_were_run_on_other_tasks_are_not_compared():
    rows = [finished(60, CUBE.format(task)) for task in (1, 2)]
    rows += [finished(50, CUBE.format(task), method="iql") for task in (3, 4)]
    table = make_table(rows, "1")
    assert [name for name, cell in row_of(table, "cube-single").cells.items() if cell.bold] == ["iql"]
    assert "cube-single: not of the same 2 tasks, and so not compared with the rest: FQL (2)" in table.notes


def test_a_family_is_the_plain_mean_of_its_tasks_whatever_their_seeds():
    first, second = (
        [finished(score, CUBE.format(1), seed=seed) for seed, score in enumerate([0, 0, 100, 100])],
        [finished(score, seed=seed) for seed, score in enumerate([50, 60])],
    )
    cell = row_of(make_table([*first, *second], "1"), "cube-single").cells["fql"]
    assert (cell.mean, cell.seeds) == (52.5, 2)
    assert cell.deviation == pytest.approx(
        math.hypot(statistics.stdev([0, 0, 100, 100]), statistics.stdev([50, 60])) / 2
    )


def test_the_published_deviation_of_a_family_is_that_of_independent_tasks():
    task = "antmaze-giant-navigate-singletask-task{}-v0"
    rows = [
        finished(score, task.format(number), "drol", seed, settings={"num_candidates": count})
        for number in range(1, 6)
        for seed, score in enumerate((58, 60, 62))
        for count in (1, 4, 16, 64)
    ]
    cell = row_of(make_table(rows, "1"), "antmaze-giant").cells["drol*"]
    assert cell.published == (45, 24)  # as printed: the mean of the tasks' deviations
    assert round(cell.interval[0]) == 4  # with 12.2, the deviation of their mean


def test_the_deviation_of_a_family_is_over_seeds_of_its_mean():
    rows = [
        finished(score, CUBE.format(task), seed=seed)
        for task, seed, score in [(1, 0, 50), (1, 1, 70), (2, 0, 70), (2, 1, 50)]
    ]
    cell = row_of(make_table(rows, "1"), "cube-single").cells["fql"]
    assert (cell.mean, cell.deviation, cell.seeds) == (60, 0, 2)


def test_a_task_that_the_paper_does_not_have_is_shown_without_a_verdict():
    task = "pointmaze-medium-navigate-singletask-task1-v0"
    cell = row_of(make_table([finished(50, task)], "1"), "pointmaze-medium").cells["fql"]
    assert (cell.mean, cell.published, cell.verdict) == (50, None, "not published")


def test_drol_is_two_columns():
    rows = [
        finished(score, method="drol", settings={"num_candidates": candidates})
        for candidates, score in ((1, 20), (4, 30), (16, 60), (64, 90))
    ]
    cells = row_of(make_table(rows, "full"), CUBE.format(2)).cells
    assert (cells["drol"].mean, cells["drol*"].mean) == (60, 90)
    notes = make_table(rows, "full").notes
    assert f"K* is 64, the best of 1, 4, 16, 64 on {SECOND}, by the seeds that are reported" in notes
    assert any(note.startswith("DROL*: K was selected on the reported seeds") for note in notes)
    odd = finished(100, method="drol", seed=9, settings={"num_candidates": 4, "bc_weight": 99.0})
    mixed = row_of(make_table([*rows, odd], "full"), CUBE.format(2)).cells  # other settings choose no K
    assert (mixed["drol"].mean, mixed["drol*"].mean) == (60, 90)
    some = row_of(make_table(rows[1:], "full"), CUBE.format(2)).cells  # K = 1 was not tried
    assert (some["drol"].mean, some["drol*"].mean) == (60, None)


def test_runs_of_several_settings_or_other_data_in_a_cell_are_noted():
    for other in ({"seed": 1}, {"method": "iql"}):  # of the same cell, or of the same row
        rows = [finished(90), finished(80, dataset_fingerprint="other", **other)]
        notes = make_table(rows, "full").notes
        assert any("dataset_fingerprint is abababab in runs/one and other in runs/one" in note for note in notes)
    for other in ({"settings": {"alpha": 3.0}}, {"step": 40, "steps": 40}):
        row = made_result(**{"task": SECOND, "method": "fql", "step": 30, "steps": 30, "score": 70.0} | other)
        table = make_table([finished(90, seed=0), finished(80, seed=1), row], "full")
        assert any("runs of 2 settings or lengths" in note for note in table.notes)
        assert row_of(table, CUBE.format(2)).cells["fql"].mean == 85


def test_a_row_that_comes_twice_counts_once_and_contradictions_are_refused():
    rows = [made_result(task=SECOND, method="fql", step=step, steps=30, score=10.0 * step / 5) for step in (10, 20, 30)]
    for given in (rows, rows * 2):
        assert row_of(make_table(given, "full"), SECOND).cells["fql"].mean == 40
    with pytest.raises(InputError, match="different scores of the same policy"):
        make_table([*rows, finished(0)], "full")


def test_the_default_task_of_a_dataset_is_the_one_that_it_stands_for():
    rows = [finished(80, seed=0), finished(90, "cube-single-play-singletask-v0", seed=1)]
    cell = row_of(make_table(rows, "1"), "cube-single").cells["fql"]
    assert (cell.mean, cell.seeds, cell.tasks) == (85, 2, (SECOND,))


def test_tasks_of_ones_own_are_rows_of_their_own():
    names = {"maze", "my_task", "halfcheetah-medium-v2"}
    table = make_table([finished(50, name) for name in names], "1")
    assert names <= {row.name for row in table.rows}


def test_how_long_ours_were_trained_is_noted():
    notes = make_table([finished(50)], "1").notes
    assert "ours were trained for 30 updates, the published ones for 1,000,000 (D4RL: 500,000)" in notes
    published = made_result(task=SECOND, method="fql", step=1_000_000, steps=1_000_000)
    assert not any("were trained for" in note for note in make_table([published], "1").notes)


def test_contradictions_of_the_printed_numbers_are_footnotes():
    assert any(note.startswith("antsoccer-arena, DeFlow: printed 67") for note in make_table([], "1").notes)
    assert any("no finished run" in note for note in make_table([], "1").notes)


def test_two_seeds_have_no_verdict_however_far_they_are():
    """65±5 beside a published 97±2 was "within noise": Welch's interval of two seeds holds nearly everything."""
    table = make_table([finished(60, seed=0), finished(70, seed=1)], "full")
    cell = row_of(table, SECOND).cells["fql"]
    assert (cell.verdict, cell.interval, cell.p) == ("too few seeds", None, None)
    assert "97±2?" in render(table)


def test_verdicts_are_corrected_for_all_cells_of_the_table():
    """The same cell is below the published number alone and undecided among many cells that are as published."""
    low = [finished(score, seed=seed) for seed, score in enumerate((85, 88, 91))]
    others = [
        finished(97.0 + change, CUBE.format(number), seed=seed)
        for number in (1, 3, 4, 5)
        for seed, change in enumerate((-1, 0, 1))
    ]
    alone, among = (row_of(make_table(rows, "full"), SECOND).cells["fql"] for rows in (low, [*low, *others]))
    assert (alone.verdict, among.verdict) == ("below", "within noise")
    assert among.interval == alone.interval
    assert among.p > 3 * alone.p
    text = render(make_table([*low, *others], "full"))
    assert f"{SECOND}, FQL: -9 from the published number, 95% interval" in text
    assert f"p {among.p:.3f} (Holm): within noise" in text


def test_an_unknown_table_or_format_is_named():
    with pytest.raises(InputError, match="unknown table '3'"):
        make_table([], "3")
    with pytest.raises(InputError, match="unknown format 'pdf'"):
        render(make_table([], "1"), "pdf")


@pytest.mark.parametrize("style", STYLES)
def test_every_format_has_our_number_and_the_published_one(style):
    text = render(make_table([finished(93.4, seed=0), finished(93.4, seed=1)], "full"), style)
    assert "93" in text
    assert CUBE.format(2) in text
    assert "97" in text


def test_latex_has_the_layout_of_the_paper():
    text = render(make_table([finished(93, seed=0), finished(95, seed=1)], "1"), "latex")
    assert r"$\underline{\mathbf{94}}$ {\tiny $\pm 1$}" in text
    assert r"\multicolumn{5}{c}{\texttt{Multi-step / Iterative Policies}}" in text
    lines = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") for line in lines} == {11}


def test_csv_has_a_line_for_each_cell():
    table = make_table([finished(60), finished(62, seed=1), finished(61, seed=2)], "1")
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(rows) == 12 * len(COLUMNS)
    cell = next(row for row in rows if row["row"] == "cube-single" and row["method"] == "fql")
    assert (cell["mean"], cell["published_mean"], cell["verdict"]) == ("61", "97", "below")
    assert 0 < float(cell["p_holm"]) < 0.05
