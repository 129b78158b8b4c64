import signal

import numpy as np
import pytest
from step_files import COUNT, flat_steps, refusal, write_csv

from drol.data.files.csv import LONGEST_LINE, CSVFile

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
    np.testing.assert_array_equal(found["terminal"][:, 0], steps["terminals"])


def test_the_share_that_is_read_grows_to_one(path, monkeypatch):
    monkeypatch.setattr("drol.data.files.fields.BLOCK_BYTES", 300)
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
    assert np.isnan(found["reward"][0, 0])
    assert found["terminal"].ravel().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "which is the observation? It has nothing"),
        ("a,a\n", "two columns have the same name"),
        (HEADER + "1,0,0,0,0\nx,0,0,0,0\n", "line 3 has 'x' in the column 'observation_0'; it must be a number"),
        (HEADER + "1,0,0,0,0\n1,0\n", "line 3 has 2 columns where the first line names 5"),
        ("a" * (LONGEST_LINE + 1), f"has a line of more than {LONGEST_LINE} letters"),
        (HEADER + "1" * (LONGEST_LINE + 1), f"has a line of more than {LONGEST_LINE} letters"),
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
    path.write_bytes(HEADER.encode() + b"1,0,0,0,TRUE\0")
    assert "has a null among its letters" in refusal(read, path)


def test_ctrl_c_is_not_an_error_of_the_file(path):
    """Wherever in the reading it comes: NumPy turns what a converter raises into an error of the number."""

    def interrupt(*_):
        raise KeyboardInterrupt

    path.write_text(HEADER + "1,0,0,false,TRUE\n" * 20_000)
    file, interrupted = CSVFile(path, {}), 0
    previous = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        for seconds in np.linspace(0.001, 0.02, 20):
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
                list(file.blocks())
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, previous)
    assert interrupted


def test_a_block_of_empty_lines_holds_no_step(path):
    path.write_text(HEADER + "\n\r\n\n")
    assert list(CSVFile(path, {}).blocks()) == []


@pytest.mark.parametrize("flag", ["", "2", "tru", "true" + 20 * " " + "x", "1" + 20 * "0"])
def test_what_is_nearly_a_flag_is_none(path, flag):
    path.write_text(HEADER + f"1,0,0,{flag},1.0\n")
    found = read(path)
    assert np.isnan(found["terminal"]).all()
    assert found["timeout"].tolist() == [[1]]


def test_what_is_no_flag_is_left_to_be_refused(path):
    path.write_text(HEADER + "1,0,0,maybe,0\n")
    assert np.isnan(read(path)["terminal"]).all()
