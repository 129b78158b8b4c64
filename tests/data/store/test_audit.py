"""What the report counts is what a slow count over whole arrays gives, however the rows are cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data.files.options import Counts
from drol.data.store.audit import Moments, Statistics, count_rows, notes, summary


def statistics_of(rows, piece=1 << 16):
    statistics = Statistics()
    count_rows(rows, statistics, piece)
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


def test_moments_of_large_numbers_do_not_cancel():
    moments = Moments()
    values = 1e8 + np.random.default_rng(0).normal(size=(1000, 1))
    for part in np.split(values, 10):
        moments.add(part)
    assert moments.deviation[0] == pytest.approx(values.std(), rel=1e-6)


def noted(rows, counts=None, held_out=1):
    return "; ".join(notes(statistics_of(rows), counts, held_out))


def test_what_looks_wrong_is_noted():
    rows = random_rows((100, 100, 100))
    assert "observation" not in noted(rows)
    strange = {name: array.copy() for name, array in rows.items()}
    strange["observation"][:, 1] = 3
    strange["observation"][:, 2] *= 1000
    strange["action"][:150, 0] = 1
    strange["action"][:, 1] *= 0.1
    strange["reward"][:] = -1
    strange["continues"][:] = 0
    text = noted(strange, Counts(dropped=2, gaps=3, too_short=4), held_out=0)
    for words in (
        "2 steps were not finite",
        "at 3 steps the next observation is not",
        "4 episodes of a single step",
        "observation dimension 1 never changes",
        "observation dimension 2 is large; train with --standardise-observations",
        "action dimension 0 is often at the limit of the box (dimension 0 in 50%",
        "action dimension 1 stays within a fifth of the box",
        "every reward is -1",
        "all 3 true ends come after exactly 100 transitions: is it a time limit?",
        "no episode is held out",
    ):
        assert words in text, words
    strange["continues"][:] = 1
    assert "no episode truly ends" in noted(strange)
    assert "1 transitions are fewer than a batch" in noted(random_rows((1,)))


def test_images_have_one_range():
    rows = random_rows((9, 9))
    rows["observation"] = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 3), np.uint8)
    found = statistics_of(rows, 7)
    assert found.image_shape == (8, 8, 3)
    assert len(found.observation.low) == 1
    assert found.observation.high[0] == rows["observation"].max()
    assert found.duplicate_share == 0


def test_many_dimensions_are_cut_short():
    lines = summary(statistics_of(random_rows((30,), observation_size=40)))
    assert sum(line.strip().startswith("observation") for line in lines) == 17
    assert any("observation 16 to 39 lie between" in line for line in lines)
