import dataclasses

import pyarrow.parquet
import pytest
from made_results import made_result

from drol.errors import InputError
from drol.results.result_files import read_results, write_results


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    return tmp_path / f"results.{request.param}"


def test_what_was_written_is_read(path):
    results = [
        made_result(settings={"bc_weight": 0.1, "hidden_sizes": [1, 2]}, figures={"a": 0.1}),
        made_result(seed=1, score=1 / 3, score_name="return", success_timing="", figures={"b": 1e-30}),
    ]
    write_results(results, path)
    read = read_results(path)
    assert read == results
    assert read.skipped == []


def test_a_broken_row_is_named_and_left_out(path):
    write_results([made_result(), made_result(outcomes="11", episodes=3), made_result(seed=1)], path)
    read = read_results(path)
    assert [row.seed for row in read] == [0, 1]
    place = "line 3" if path.suffix == ".csv" else "row 2"
    assert read.skipped == [f"{path}: {place}: outcomes: expected 3 characters 0 or 1, got 2 characters"]


NONSENSE = {
    "a rate that is not that of its episodes": (
        {"score": 100.0},
        "score: expected 75, the success rate of outcomes, got 100",
    ),
    "no episode": ({"outcomes": "", "episodes": 0, "score": 0.0}, "episodes: expected an integer >= 1, got '0'"),
    "a step before the first": ({"step": -5}, "step: expected an integer >= 0, got '-5'"),
    "a seed of thirty digits": ({"seed": 10**30}, "seed: expected an integer"),
    "no number of draws": ({"best_of": 0}, "best_of: expected an integer >= 1, got '0'"),
}


@pytest.mark.parametrize(("changes", "message"), NONSENSE.values(), ids=NONSENSE)
def test_a_row_that_makes_no_sense_is_named(tmp_path, changes, message):
    write_results([dataclasses.replace(made_result(), **changes)], tmp_path / "results.csv")
    (words,) = read_results(tmp_path / "results.csv").skipped
    assert message in words


@pytest.mark.parametrize("value", [[1], {"a": 1}, float("inf"), 0.7])
def test_numbers_of_a_parquet_file_that_are_none_are_named(tmp_path, value):
    path = tmp_path / "results.parquet"
    row = {**made_result().columns(), "seed": value}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    assert "row 1: seed: expected an integer, got " in read_results(path).skipped[0]


def test_a_file_that_a_spreadsheet_saved_is_read(tmp_path):
    write_results([made_result()], tmp_path / "results.csv")
    (tmp_path / "results.csv").write_text((tmp_path / "results.csv").read_text(), encoding="utf-8-sig")
    assert read_results(tmp_path / "results.csv") == [made_result()]


def test_a_cut_line_is_a_broken_row(tmp_path):
    path = tmp_path / "results.csv"
    write_results([made_result(), made_result(seed=1)], path)
    path.write_text(path.read_text()[:-80])
    read = read_results(path)
    assert len(read) == 1
    assert f"{path}: line 3: " in read.skipped[0]


def test_other_files_are_refused(tmp_path, path):
    with pytest.raises(InputError, match="does not exist"):
        read_results(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"not a results file: the column task is missing|cannot be read as Parquet"):
        read_results(path)
    with pytest.raises(InputError, match=r"name must end in \.csv or \.parquet"):
        write_results([], tmp_path / "results.txt")
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        write_results([], tmp_path / "missing" / "results.csv")
