"""CSV files as spreadsheets, loggers and pandas write them."""

import gzip
import sys

import numpy as np
import pytest
from step_files import COUNT, flat_steps, refusal, write_csv

from drol.data.import_options import ReadingOptions
from drol.data.importing.import_files import import_files
from drol.data.readers import open_steps
from drol.data.readers.csv_tables import LONGEST_LINE, CSVFile

HEADER = "observation_0,action_0,reward,terminal,timeout\n"


def read(path, **mapping):
    """All steps of a file, joined."""
    blocks = [block for block, _ in CSVFile(path, mapping).blocks()]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.csv"


def test_columns_are_joined_to_fields(path):
    steps = flat_steps()
    write_csv(path, steps)
    found = read(path)
    np.testing.assert_array_equal(found["observation"].astype(np.float32), steps["observations"])
    np.testing.assert_array_equal(found["terminal"], steps["terminals"])


def test_the_share_that_is_read_grows_to_one(path, monkeypatch):
    monkeypatch.setattr("drol.data.readers.fields.BLOCK_BYTES", 300)
    write_csv(path, flat_steps())
    blocks = list(CSVFile(path, {}).blocks())
    shares = [share for _, share in blocks]
    assert len(blocks) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert sum(len(block["action"]) for block, _ in blocks) == COUNT


def test_spreadsheets_write_odd_things(path):
    """A byte order mark, quotation marks, spaces, empty lines, words for flags, and Windows' ends of lines."""
    path.write_bytes(
        b'\xef\xbb\xbf observation ,"action",reward,terminal,note\r\n'
        b'1,0.5,nan,TRUE,"a, b"\r\n'
        b"\r\n"
        b'"2", 0.25 ,1e-3,false,\r\n'
    )
    found = read(path)
    assert found["observation"].ravel().tolist() == [1, 2]
    assert found["action"].ravel().tolist() == [0.5, 0.25]
    assert np.isnan(found["reward"][0])
    assert found["terminal"].ravel().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "cannot tell which column is the observation; it has nothing"),
        ("a,a\n", "two columns have the same name"),
        (HEADER + "1,0,0,0,0\nx,0,0,0,0\n", "line 3: column 'observation_0' has 'x'; write a number"),
        (HEADER + "1,0,0,0,0\n1,0\n", "line 3: 2 columns; the first line names 5"),
        ("a" * (LONGEST_LINE + 1), f"has a line of more than {LONGEST_LINE:,} bytes"),
        (HEADER + "1" * (LONGEST_LINE + 1), f"has a line of more than {LONGEST_LINE:,} bytes"),
    ],
    ids=["empty", "a column twice", "a word", "a short line", "an endless header", "an endless line"],
)
def test_what_cannot_be_read_is_named(path, content, words):
    path.write_text(content)
    assert words in refusal(read, path)


def test_what_is_no_text_is_refused(path):
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not text in UTF-8" in refusal(read, path)
    path.write_bytes(HEADER.encode() + b"1,0,0,0,0\n\xff")
    assert "is not text in UTF-8" in refusal(read, path)
    path.write_bytes(HEADER.encode() + b"1,0,0,0,0\n1,0,0,0,1\0")
    assert "line 3: column 'timeout' has '1\\x00'" in refusal(read, path)


@pytest.mark.parametrize("place", ["pyarrow.csv.read_csv", "drol.data.readers.csv_tables.read_number"])
def test_ctrl_c_is_not_an_error_of_the_file(path, monkeypatch, place):
    def interrupt(*_):
        raise KeyboardInterrupt

    path.write_text(HEADER + "1,0,0,false,0\n1,0,0,1.0,0\n")  # words and numbers: read cell by cell
    file = CSVFile(path, {})
    monkeypatch.setattr(place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(file.blocks())


def test_a_block_of_empty_lines_holds_no_step(path):
    path.write_text(HEADER + "\n\r\n\n")
    assert list(CSVFile(path, {}).blocks()) == []


def test_flags_may_be_words_or_numbers(path):
    path.write_text(HEADER + "1,0,0,True,1.0\n1,0,0,FALSE,0\n1,0,0, true ,\n")
    found = read(path)
    assert found["terminal"].tolist() == [1, 0, 1]
    np.testing.assert_array_equal(found["timeout"], [1, 0, np.nan])


@pytest.mark.parametrize("flag", ["tru", "yes", "0x1"])
def test_text_in_place_of_flags_is_an_error(path, flag):
    path.write_text(HEADER + f"1,0,0,{flag},0\n")
    assert f"column 'terminal' must hold numbers; it is text such as '{flag}'" in refusal(read, path)
    path.write_text(HEADER + f"1,0,0,0,0\n1,0,0,{flag},0\n")
    assert f"line 3: column 'terminal' has '{flag}'" in refusal(read, path)


@pytest.mark.parametrize("cell", ["O.5", "1d5", "0x10", "0.5.1", "0,5"])
@pytest.mark.parametrize("mapping", [{}, {"action": ["action"]}, {"action": ["action*"]}])
def test_one_wrong_cell_never_removes_its_column(path, cell, mapping):
    """Issue 29, point 1: the column was dropped from the action and the import ended with exit code 0."""
    lines = ["0.1,0.2,1,2,0\n"] * 20
    lines[4] = f'"{cell}",0.2,1,2,0\n'
    path.write_text("action0,action1,obs0,obs1,reward\n" + "".join(lines))
    message = refusal(
        import_files, [path], "mine", mapping, ReadingOptions("timeout", file_is_episode=True), root=path.parent / "d"
    )
    assert f"{path}: line 6: column 'action0' has '{cell}'" in message


def test_a_column_of_text_in_a_family_is_named(path):
    path.write_text("action0,action1,obs0\nbroken,0.2,1\nbroken,0.2,1\n")
    assert "column 'action0' belongs to 'action' but does not hold numbers (it is text such as 'broken')" in refusal(
        read, path
    )


def test_columns_with_the_same_number_are_an_error(path):
    """Issue 29, point 1: obs1 was left out."""
    path.write_text("obs0,obs1,obs_1,action\n1,2,3,0\n")
    assert "columns 'obs1' and 'obs_1' are both number 1 of 'obs'; name the columns one by one" in refusal(read, path)
    assert read(path, observation=["obs0", "obs_1"])["observation"].tolist() == [[1, 3]]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("obs0,OBS1,x,action0", "column 'OBS1' may be one of 'obs', beside 'obs0', but is written in another way"),
        ("obs0,obs 1,x,action0", "column 'obs 1' may be one of 'obs'"),
        ("obs0,obs1 [m],obs1 (rad),action0", "column 'obs1 [m]' may be one of 'obs'"),
        ("obs0,obs_x,x,action0", "column 'obs_x' may belong to the observation, beside obs0; --observation obs takes"),
        ("obs0,x,action0,action1x", "column 'action1x' may belong to the action, beside action0; --action action"),
        ("obs0,x,action0,Action_gripper", "column 'Action_gripper' may belong to the action"),
    ],
)
def test_a_column_that_may_belong_to_a_field_is_never_left_out(path, header, words):
    path.write_text(f"{header}\n" + "0.1,0.2,0.3,0.4\n" * 3)
    assert words in refusal(read, path)


def test_a_family_that_is_named_may_have_relatives(path):
    path.write_text("obs0,obs_x,action0\n1,2,0\n")
    assert read(path, observation=["obs"])["observation"].tolist() == [1]
    assert read(path, observation=["obs*"])["observation"].tolist() == [[1, 2]]


def test_a_column_without_a_name_is_listed(path):
    path.write_text(",observation,action\n0,1,0\n")
    assert [each.name for each in CSVFile(path, {}).unused] == ["(column 1)"]


def test_a_point_beside_decimal_commas_is_an_error(path):
    """It may separate thousands, as in 1.234."""
    path.write_text("observation;action\n" + "1,5;0,5\n" * 200 + "1.234;0,5\n")
    assert "line 202: column 'observation' has '1.234'" in refusal(read, path)


def test_a_quotation_mark_that_is_not_closed_swallows_no_lines(path):
    path.write_text('observation,action,note\n1,0,"a\n2,0,b\n3,0,c"\n4,0,d\n')
    assert "line 2: a quotation mark is not closed in its line" in refusal(read, path)


def test_without_pyarrow_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path.write_text(HEADER)
    assert "install it with: pip install 'drol[tables]'" in refusal(open_steps, path, {})


MAPPING = {"observation": ["x", "y"], "action": ["u"]}


def read_named(path, mapping=MAPPING):
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
    file, steps = read_named(tmp_path / "log.csv")
    np.testing.assert_allclose(steps["observation"], [[1.5, 2], [-3, 0.4]])
    np.testing.assert_allclose(steps["action"], [0.5, 1])
    assert file.notes == ((note,) if note else ())


def test_packed_files_are_read_named(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"x,y,u\n1,2,0.5\n"))
    np.testing.assert_array_equal(read_named(path)[1]["observation"], [[1, 2]])
    path.write_bytes(gzip.compress(b"x,y,u\n1,2,0.5\n")[:-9])
    assert f"{path} is not a valid gzip file" in refusal(read_named, path)
    path.write_bytes(b"x,y,u\n1,2,0.5\n")
    assert f"{path} is not a valid gzip file" in refusal(read_named, path)


def test_a_packed_file_that_is_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("drol.data.readers.csv_tables.FREE_BYTES", 1000)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"x,y,u\n" + b"1,2,0.5\n" * 100_000))
    assert "unpacks to more than 200 times its size; unpack it first" in refusal(read_named, path)


def test_empty_cells_are_missing_numbers(tmp_path):
    (tmp_path / "log.csv").write_text("x,y,u\n1,,0.5\n,4,\n\n5,6,1\n")
    steps = read_named(tmp_path / "log.csv")[1]
    np.testing.assert_array_equal(steps["observation"], [[1, np.nan], [np.nan, 4], [5, 6]])
    np.testing.assert_array_equal(steps["action"], [0.5, np.nan, 1])


def test_episodes_and_times_may_be_text(tmp_path):
    long = "a longer name than sixty-four letters " * 3
    rows = ["run_a,2026-01-01 00:00:00.0", "run_a,2026-01-01 00:00:00.5", f"{long},2026-01-02"]
    (tmp_path / "log.csv").write_text("ep,time,x,y,u\n" + "".join(f"{row},1,2,0.5\n" for row in rows))
    file, steps = read_named(tmp_path / "log.csv", MAPPING | {"episode": ["ep"]})
    assert steps["episode"].tolist() == [row.split(",")[0].strip() for row in rows]
    assert file.chosen["time"] == ["time"]
    (tmp_path / "log.csv").write_text("ep,x,y,u\na,1,2,0.5\n,1,2,0.5\n")
    message = refusal(read_named, tmp_path / "log.csv", MAPPING | {"episode": ["ep"]})
    assert message.endswith("line 3: column 'ep' is empty; write a text in every line")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,abc,0.5", "line 3: column 'y' has 'abc'; write a number, or leave the cell empty"),
        ("1,1_000,0.5", "line 3: column 'y' has '1_000'"),
        ("1,,x", "line 3: column 'u' has 'x'"),
        ("1,2", "line 3: 2 columns; the first line names 3"),
        (",", "line 3: 2 columns"),
        ("1,2,0.5,7", "line 3: 4 columns; the first line names 3"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path, line, words):
    (tmp_path / "log.csv").write_text(f"x,y,u\n1,2,0.5\n{line}\n")
    assert words in refusal(read_named, tmp_path / "log.csv")


def test_units_in_the_first_line_are_kept(tmp_path):
    (tmp_path / "log.csv").write_text("x [m],y (rad),u,note\n1,2,0.5,hello\n")
    file = read_named(tmp_path / "log.csv")[0]
    assert file.dimensions("observation").describe() == ["x [m]", "y [rad]"]
    assert [(each.name, each.why) for each in file.unused] == [("note", "it is text such as 'hello'")]
