"""Rows are completed equally in memory and in pieces; the fingerprint depends only on values."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import refusal
from toys import random_rows

from drol.data import trajectory_rows as rows_module
from drol.data.actions import ACTION_LIMIT
from drol.data.trajectory_rows import ROW_ARRAYS, Fingerprint, RowFinisher, check_rows, finish_rows, join_rows, pieces

LENGTHS = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def large_actions(lengths, seed=0):
    """Return rows with some actions at the action bounds."""
    rows = random_rows(lengths, seed)
    rows["action"] = np.clip(rows["action"] * 1.5, -1, 1)
    return rows


def by_definition(rows):
    """The same, row by row."""
    count = len(rows["last"])
    finished = {name: array.copy() for name, array in rows.items()}
    for row in range(count):
        source = row
        if rows["last"][row]:
            source = row + 1 if row + 1 < count else row - 1
            finished["reward"][row] = finished["continues"][row] = 0
        finished["action"][row] = np.clip(rows["action"][source], -ACTION_LIMIT, ACTION_LIMIT)
    return finished


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(found[name], expected[name])


@settings(deadline=None, max_examples=50)
@given(lengths=LENGTHS, seed=st.integers(0, 100))
def test_last_rows_take_the_next_action_and_earn_nothing(lengths, seed):
    rows = large_actions(lengths, seed)
    before = {name: array.copy() for name, array in rows.items()}
    assert_same(finish_rows(rows), by_definition(rows))
    assert_same(rows, before)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), lengths=LENGTHS, seed=st.integers(0, 100))
def test_pieces_are_finished_as_the_whole(data, lengths, seed):
    rows = large_actions(lengths, seed)
    count = len(rows["last"])
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1))))
    finisher, found = RowFinisher(), None
    for first, stop in zip((0, *cuts), (*cuts, count), strict=True):
        found = join_rows(found, finisher.add({name: array[first:stop] for name, array in rows.items()}))
    assert_same(join_rows(found, finisher.close()), finish_rows(rows))


def test_an_open_trajectory_cannot_be_closed():
    finisher = RowFinisher()
    finisher.add({name: array[:3] for name, array in random_rows([5]).items()})
    with pytest.raises(AssertionError, match="still open"):
        finisher.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_are_overwritten_only_where_that_is_allowed(dtype):
    rows = large_actions([5, 3])
    rows["action"] = rows["action"].astype(dtype)
    before = rows["action"].copy()
    kept = finish_rows(rows)
    np.testing.assert_array_equal(rows["action"], before)
    overwritten = finish_rows(rows, overwrite=True)
    assert_same(overwritten, kept)
    assert (overwritten["action"] is rows["action"]) == (dtype == np.float32)


def test_an_array_that_cannot_be_written_is_copied():
    rows = large_actions([5, 3])
    rows["action"].flags.writeable = False
    assert finish_rows(rows, overwrite=True)["action"] is not rows["action"]


@pytest.mark.parametrize("piece_bytes", [1, 50, 1 << 20])
def test_the_size_of_pieces_does_not_change_what_is_found(monkeypatch, piece_bytes):
    monkeypatch.setattr(rows_module, "PIECE_BYTES", piece_bytes)
    rows = large_actions([5, 3])
    assert_same(finish_rows(rows), by_definition(rows))
    wrong = {name: array.copy() for name, array in rows.items()}
    wrong["observation"][0, 0], wrong["observation"][9, 1] = np.nan, np.inf
    assert refusal(check_rows, wrong).startswith("observation has 2 values that are NaN")
    wrong = {name: array.copy() for name, array in rows.items()}
    wrong["action"][8, 0] = -1.25
    assert refusal(check_rows, wrong).startswith("actions reach 1.25")
    wrong["action"][8, 0], wrong["action"][9, 0] = 1 + 5e-7, np.nan  # rounding, and a last row, where nothing is read
    check_rows(wrong)


@given(rows=st.integers(0, 50), columns=st.integers(0, 5), piece_bytes=st.integers(1, 200))
def test_pieces_cover_every_row_once(rows, columns, piece_bytes):
    array = np.zeros((rows, columns), np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "PIECE_BYTES", piece_bytes)
        found = [row for piece in pieces(array) for row in range(rows)[piece]]
    assert found == list(range(rows))


def test_the_format_of_a_fingerprint_is_fixed():
    """Runs and imported datasets record fingerprints, so the same data must give the same one in every version."""
    rows = random_rows([2, 1])
    fingerprint, expected = Fingerprint(), hashlib.sha256()
    for name in ROW_ARRAYS:
        fingerprint.begin_array(name, rows[name].dtype, rows[name].shape)
        for row in rows[name]:
            fingerprint.add_bytes(row.tobytes())
        shape = "(5, 3)" if name == "observation" else "(5, 2)" if name == "action" else "(5,)"
        expected.update(f"{name} {'|b1' if name == 'last' else '<f4'} {shape}".encode() + rows[name].tobytes())
    fingerprint.add_image_options(1, 0.0)
    assert fingerprint.hexdigest() == expected.hexdigest()
    fingerprint.add_image_options(3, 0.5)
    expected.update(b"frame_stack 3 crop_probability 0.5")
    assert fingerprint.hexdigest() == expected.hexdigest()
