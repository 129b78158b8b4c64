import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.trajectories import Part, spread, trajectories_of

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 1000))
def test_trajectories_are_those_that_the_dataset_was_made_of(lengths, seed):
    rows = random_rows(lengths, seed)
    found = trajectories_of(Dataset.from_rows(**rows))
    np.testing.assert_array_equal(found.length, lengths)
    np.testing.assert_array_equal(found.first, np.cumsum([0, *lengths[:-1]]))
    np.testing.assert_array_equal(found.number, np.repeat(np.arange(len(lengths)), lengths))
    valid = ~rows["last"]
    np.testing.assert_array_equal(found.reward, rows["reward"][valid])
    np.testing.assert_array_equal(found.continues, rows["continues"][valid])
    parts = np.split(rows["reward"][valid].astype(float), np.cumsum(lengths)[:-1])
    np.testing.assert_allclose(found.returns(), [part.sum() for part in parts], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 1000), discount=st.sampled_from([0.0, 0.5, 0.99]))
def test_a_discounted_return_stops_where_the_task_or_the_trajectory_does(lengths, seed, discount):
    found = trajectories_of(Dataset.from_rows(**random_rows(lengths, seed)))
    returns, unseen = found.discounted_returns(discount)
    for first, length in zip(found.first, found.length, strict=True):
        for start in range(first, first + length):
            total, weight = 0.0, 1.0
            for index in range(start, first + length):
                total += weight * found.reward[index]
                weight *= discount * found.continues[index]
            assert returns[start] == pytest.approx(total, abs=1e-6)
            assert unseen[start] == pytest.approx(weight)


@given(size=st.integers(0, 300), count=st.integers(1, 50))
def test_spread_numbers_are_different_in_order_and_reach_both_ends(size, count):
    found = spread(size, count)
    assert len(found) == min(size, count)
    assert (np.diff(found) > 0).all()
    if size and count > 1:
        assert (found[0], found[-1]) == (0, size - 1)


def test_a_part_knows_its_transitions():
    dataset = Dataset.from_rows(**random_rows([50, 100, 50]))
    part = Part(dataset, trajectories_of(dataset), 2, 3)
    assert part.transitions == (150, 200)
    np.testing.assert_array_equal(part.spread(5), [150, 162, 174, 187, 199])
