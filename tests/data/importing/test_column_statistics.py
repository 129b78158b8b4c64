"""Statistics equal those of a slow computation over complete arrays, for any split of the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data.importing import column_statistics as statistics_module
from drol.data.importing.column_statistics import Statistics


def statistics_of(rows, piece=1 << 16):
    statistics, seen = Statistics(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics_module, "PIECE_ROWS", piece)
        statistics.add_all(rows, seen.append)
    assert sum(seen) == sum(array.nbytes for array in rows.values())
    return statistics


@settings(deadline=None, max_examples=60)
@given(lengths=st.lists(st.integers(1, 8), min_size=1, max_size=12), piece=st.integers(1, 30), seed=st.integers(0, 9))
def test_pieces_do_not_change_what_is_counted(lengths, piece, seed):
    rows = random_rows(lengths, seed)
    found = statistics_of(rows, piece)
    last = rows["last"]
    assert np.concatenate(found.lengths).tolist() == list(lengths)
    assert found.transitions == sum(lengths)
    starts = np.concatenate(([0], np.flatnonzero(last)[:-1] + 1))
    returns = [rows["reward"][start : start + length].sum() for start, length in zip(starts, lengths, strict=True)]
    np.testing.assert_allclose(np.concatenate(found.returns), returns, atol=1e-5)
    ended = [rows["continues"][start + length - 1] == 0 for start, length in zip(starts, lengths, strict=True)]
    assert np.concatenate(found.ended).tolist() == ended
    np.testing.assert_allclose(found.observation.mean, rows["observation"].mean(0), atol=1e-5)
    np.testing.assert_allclose(found.observation.deviation, rows["observation"].std(0), atol=1e-5)
    np.testing.assert_array_equal(found.action.low, rows["action"][~last].min(0))
    whole = statistics_of(rows)
    np.testing.assert_array_equal(np.concatenate(found.episode_hashes), np.concatenate(whole.episode_hashes))
    assert found.duplicate_episodes == 0


@settings(deadline=None, max_examples=30)
@given(piece=st.integers(1, 40))
def test_copies_of_episodes_are_found(piece):
    rows = random_rows((7, 5))
    twice = {name: np.concatenate((array, array, array[8:])) for name, array in rows.items()}
    found = statistics_of(twice, piece)
    assert found.duplicate_episodes == 3
    assert found.duplicate_share == pytest.approx(1 - 12 / 29)
    reversed_rows = {name: np.concatenate((array[8:], array[:8])) for name, array in rows.items()}
    assert statistics_of(reversed_rows).duplicate_episodes == 0


def test_images_have_one_range():
    rows = random_rows((9, 9))
    rows["observation"] = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 3), np.uint8)
    found = statistics_of(rows, 7)
    assert found.image_shape == (8, 8, 3)
    assert len(found.observation.low) == 1
    assert found.observation.high[0] == rows["observation"].max()
    assert found.duplicate_share == 0
