"""CSV files as spreadsheets, loggers and pandas write them."""

import gzip

import numpy as np
import pytest
from step_files import refusal

from drol.data.files import open_steps

MAPPING = {"observation": ["x", "y"], "action": ["u"]}


def read(path, mapping=MAPPING):
    file = open_steps(path, mapping)
    blocks = [block for block, _ in file.blocks()]
    return file, {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("x,y,u\n1.5,2,0.5\n-3,4e-1,1\n", None),
        ("x;y;u\n1.5;2;0.5\n-3;4e-1;1\n", "columns are separated by semicolons"),
        ("x;y;u\n1,5;2;0,5\n-3;4e-1;1\n", "columns are separated by semicolons, numbers have a decimal comma"),
        ("x\ty\tu\n1.5\t2\t0.5\n-3\t4e-1\t1\n", "columns are separated by tabs"),
        ("x|y|u\n1,5|2|0,5\n-3|0,4|1\n", "columns are separated by bars, numbers have a decimal comma"),
        (
            '"x";"y";"u"\n"1,5";2;0,5\n-3;0,4;1\n',
            "columns are separated by semicolons, numbers have a decimal comma",
        ),
    ],
)
def test_separators_and_decimal_commas_are_found_and_said(tmp_path, text, note):
    (tmp_path / "log.csv").write_text(text)
    file, steps = read(tmp_path / "log.csv")
    np.testing.assert_allclose(steps["observation"], [[1.5, 2], [-3, 0.4]])
    np.testing.assert_allclose(steps["action"], [[0.5], [1]])
    assert file.notes == ((note,) if note else ())


def test_packed_files_are_read(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"x,y,u\n1,2,0.5\n"))
    np.testing.assert_array_equal(read(path)[1]["observation"], [[1, 2]])
    path.write_bytes(gzip.compress(b"x,y,u\n1,2,0.5\n")[:-9])
    assert f"{path} is not a whole gzip file" in refusal(read, path)
    path.write_bytes(b"x,y,u\n1,2,0.5\n")
    assert f"{path} is not a whole gzip file" in refusal(read, path)


def test_a_packed_file_that_is_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("drol.data.files.csv.FREE_BYTES", 1000)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"x,y,u\n" + b"1,2,0.5\n" * 100_000))
    assert "unpacks to more than 200 times its size; unpack it first" in refusal(read, path)


def test_empty_cells_are_missing_numbers(tmp_path):
    (tmp_path / "log.csv").write_text("x,y,u\n1,,0.5\n,4,\n\n5,6,1\n")
    steps = read(tmp_path / "log.csv")[1]
    np.testing.assert_array_equal(steps["observation"], [[1, np.nan], [np.nan, 4], [5, 6]])
    np.testing.assert_array_equal(steps["action"], [[0.5], [np.nan], [1]])


def test_episodes_and_times_may_be_text(tmp_path):
    long = "a longer name than sixty-four letters " * 3
    rows = ["run_a,2026-01-01 00:00:00.0", "run_a,2026-01-01 00:00:00.5", f"{long},2026-01-02"]
    (tmp_path / "log.csv").write_text("ep,time,x,y,u\n" + "".join(f"{row},1,2,0.5\n" for row in rows))
    file, steps = read(tmp_path / "log.csv", MAPPING | {"episode": ["ep"]})
    assert steps["episode"][:, 0].tolist() == [row.split(",")[0].strip() for row in rows]
    assert file.chosen["time"] == ["time"]
    (tmp_path / "log.csv").write_text("ep,x,y,u\na,1,2,0.5\n,1,2,0.5\n")
    message = refusal(read, tmp_path / "log.csv", MAPPING | {"episode": ["ep"]})
    assert message.endswith("line 3 has nothing in the column 'ep'; it must have")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,abc,0.5", "line 3 has 'abc' in the column 'y'; it must be a number"),
        ("1,1_000,0.5", "line 3 has '1_000' in the column 'y'"),
        ("1,,x", "line 3 has 'x' in the column 'u'"),
        ("1,2", "line 3 has 2 columns where the first line names 3"),
        (",", "line 3 has 2 columns"),
        ("1,2,0.5,7", "line 3 has 4 columns where the first line names 3; each line must have as many"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path, line, words):
    (tmp_path / "log.csv").write_text(f"x,y,u\n1,2,0.5\n{line}\n")
    assert words in refusal(read, tmp_path / "log.csv")


def test_units_in_the_first_line_are_kept(tmp_path):
    (tmp_path / "log.csv").write_text("x [m],y (rad),u,note\n1,2,0.5,hello\n")
    file = read(tmp_path / "log.csv")[0]
    assert file.dimensions("observation").describe() == ["x [m]", "y [rad]"]
    assert [(each.name, each.why) for each in file.unused] == [("note", "it is text")]
