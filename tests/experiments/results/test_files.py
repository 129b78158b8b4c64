import pytest
from made_results import made_result

from drol.errors import InputError
from drol.experiments.results.files import read_results, write_results


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    return tmp_path / f"results.{request.param}"


def test_what_was_written_is_read(path):
    results = [
        made_result(settings={"bc_weight": 0.1, "hidden_sizes": [1, 2]}, score=1 / 3, figures={"a": 0.1}),
        made_result(seed=1, success_timing="", figures={"b": 1e-30}),
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
    assert read.skipped == [f"{path}, {place}: outcomes has 2 characters; it must be 3 of 0 and 1"]


def test_a_cut_line_is_a_broken_row(tmp_path):
    path = tmp_path / "results.csv"
    write_results([made_result(), made_result(seed=1)], path)
    path.write_text(path.read_text()[:-80])
    read = read_results(path)
    assert len(read) == 1
    assert f"{path}, line 3: " in read.skipped[0]


def test_other_files_are_refused(tmp_path, path):
    with pytest.raises(InputError, match="there is no file"):
        read_results(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"no results file: it has no column task|cannot be read as Parquet"):
        read_results(path)
    with pytest.raises(InputError, match=r"its name must end in \.csv or \.parquet"):
        write_results([], tmp_path / "results.txt")
    with pytest.raises(InputError, match="there is no folder"):
        write_results([], tmp_path / "missing" / "results.csv")
