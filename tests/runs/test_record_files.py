"""Lines of a run's files that are no rows: each is named with its file and set aside, and no other is touched."""

import math

import pytest

from drol.runs.record_files import read_rows, rewrite
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow

BAD = {
    "cut": (b'{"step": 7', "not JSON (Expecting ',' delimiter: line 1 column 11 (char 10))"),
    "empty": (b"", "not JSON (Expecting value"),
    "a number": (b"5", "expected an object, got 5"),
    "no entries": (b"{}", "step: missing"),
    "not UTF-8": (b'{"step": 1, "seed": 0, "loss\xff": 1}', "not JSON ('utf-8' codec"),
    "NUL bytes": (b"\0" * 500, "not JSON (Expecting value: line 1 column 1 (char 0))"),
    "brackets": (b"[" * 100_000, "not JSON ("),
    "a step in words": (b'{"step": "7", "seed": 0}', "step: expected an integer, got '7'"),
    "a step below zero": (b'{"step": -7, "seed": 0}', "step: expected an integer >= 0, got -7"),
    "a seed that is true": (b'{"step": 7, "seed": true}', "seed: expected an integer, got True"),
    "a step that no float holds": (
        b'{"step": 1' + b"0" * 400 + b', "seed": 0}',
        "step: expected an integer <= 4611686018427387904, got 1000",
    ),
    "a metric that no float holds": (
        b'{"step": 7, "seed": 0, "loss": -1' + b"0" * 400 + b"}",
        "loss: expected a number, got -100",
    ),
    "an entry twice": (b'{"step": 7, "seed": 0, "seed": 1}', "not JSON (repeated key 'seed')"),
    "a metric in words": (b'{"step": 7, "seed": 0, "loss": "low"}', "loss: expected a number, got 'low'"),
}


def lines(*steps):
    return [b'{"step": %d, "seed": 0, "loss": 0.5}' % step for step in steps]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


@pytest.mark.parametrize(("text", "fault"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_the_others_are_read(path, text, fault, caplog):
    path.write_bytes(b"\n".join([*lines(1, 2), text, *lines(3), b""]))
    rows = read_rows(path, MetricsRow)
    assert [row.step for row in rows] == [1, 2, 3]
    (words,) = caplog.messages
    assert words.startswith(f"{path}: line 3: {fault}")


@pytest.mark.parametrize(("text", "fault"), BAD.values(), ids=BAD)
def test_a_bad_line_is_set_aside_and_the_others_stay_byte_for_byte(path, text, fault, caplog):
    for count in (1, 2):  # what was set aside before stays
        path.write_bytes(b"\n".join([*lines(1, 2), text, *lines(3), b""]))
        assert rewrite(path, MetricsRow, lambda row: True) == 1
        (words,) = caplog.messages
        caplog.clear()
        assert words.startswith(f"{path}: line 3: {fault}")
        assert words.endswith("; set aside in metrics.jsonl.bad")
        assert path.read_bytes() == b"\n".join([*lines(1, 2, 3), b""])
        assert path.with_name("metrics.jsonl.bad").read_bytes() == (text + b"\n") * count
    assert rewrite(path, MetricsRow, lambda row: True) == 0


def test_many_bad_lines_are_not_all_named(path, caplog):
    path.write_bytes(b"x\n" * 500)
    assert read_rows(path, MetricsRow) == []
    assert len(caplog.messages) == 4
    assert caplog.messages[-1] == f"{path}: 497 more lines are not rows"


def test_rows_that_leave_are_kept_elsewhere_first(path, tmp_path, monkeypatch):
    path.write_bytes(b"\n".join([*lines(1, 5), b""]))
    rewrite(path, MetricsRow, lambda row: row.step < 3, forgotten=tmp_path / "forgotten")
    assert path.read_bytes() == b"\n".join([*lines(1), b""])
    assert (tmp_path / "forgotten" / "metrics.jsonl").read_bytes() == b"\n".join([*lines(5), b""])


def test_a_row_that_a_kill_cut_off_goes_without_a_word_and_one_that_was_whole_before_is_named(path, caplog):
    content = b"\n".join([*lines(1, 2), lines(3)[0][:20]])
    path.write_bytes(content)
    assert rewrite(path, MetricsRow, lambda row: True, whole=2) == 0
    assert not path.with_name("metrics.jsonl.bad").exists()
    path.write_bytes(content)
    assert rewrite(path, MetricsRow, lambda row: True, whole=3) == 1
    assert caplog.messages == [f"{path}: line 3: cut off; set aside in metrics.jsonl.bad"]
    assert path.read_bytes() == b"\n".join([*lines(1, 2), b""])


def test_a_file_that_needs_no_change_is_not_written(path, monkeypatch):
    path.write_bytes(b"\n".join([*lines(1, 2), b""]))
    monkeypatch.setattr("drol.runs.record_files.write_whole", None)
    assert rewrite(path, MetricsRow, lambda row: True) == 0
    assert rewrite(path.with_name("absent.jsonl"), MetricsRow, lambda row: True) == 0


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (EvaluationRow, b'{"step": 1, "seed": 0, "score": "high"}'),
        (EvaluationRow, b'{"step": 1, "seed": 0, "episodes": 3}'),
        (EvaluationRow, b'{"step": 1, "seed": 0, "episodes": [3]}'),
        (EvaluationRow, b'{"step": 1, "seed": 0, "episodes": [{"seed": 0}]}'),
        (EvaluationRow, b'{"step": 1, "seed": 0, "offline": {"error": "x"}}'),
        (EvaluationRow, b'{"step": 1, "seed": 0, "acting": []}'),
        (OnlineEpisodeRow, b'{"step": 1, "seed": 0, "return": 1.0, "length": 2.5, "success": true}'),
        (OnlineEpisodeRow, b'{"step": 1, "seed": 0, "return": 1.0, "length": 2, "success": 1}'),
        (OfflineRow, b'{"step": 1, "seed": 0}'),
        (
            OfflineRow,
            b'{"step":1,"seed":0,"best_of":1,"discount":0.9,"updates":1,"unseen":true,"seconds":1,"value":[1]}',
        ),
    ],
)
def test_every_kind_of_row_refuses_other_types(path, kind, text, caplog):
    path.write_bytes(text + b"\n")
    rows = read_rows(path, kind)
    assert rows == []
    assert caplog.messages[0].startswith(f"{path}: line 1: ")


def test_rows_hold_numbers_that_are_not_finite(path):
    path.write_bytes(b'{"step": 1, "seed": 0, "loss": NaN, "reward": -Infinity}\n')
    (row,) = read_rows(path, MetricsRow)
    assert math.isnan(row.values["loss"])
    assert row.values["reward"] == -math.inf
