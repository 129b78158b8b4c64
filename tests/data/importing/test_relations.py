import numpy as np
import pytest

from drol.data.dimensions import Dimensions
from drol.data.importing.relations import LAGS, RowSample, correlate, find_wraps, notes_on_actions, relate

ROWS = 3000


def move(delay=0, order=(0, 1), absolute=False):
    """Two joints that follow their commands after some steps; return observations, actions, ends."""
    generator = np.random.default_rng(0)
    last = np.arange(ROWS) % 100 == 99
    action = generator.uniform(-1, 1, (ROWS, 2))
    state = np.zeros((ROWS, 3))
    for row in range(ROWS - 1):
        if last[row]:
            continue
        command = action[min(max(row - delay, 0), ROWS - 1)][list(order)]
        state[row + 1, :2] = command if absolute else state[row, :2] + 0.1 * command
        state[row + 1, 2] = generator.normal()
    return state, action, last


def notes(*arguments, **options):
    named = {"action": Dimensions(("left", "right")), "observation": Dimensions(("p", "q", "noise"))}
    return "; ".join(notes_on_actions(relate(*move(*arguments, **options)), named))


@pytest.mark.parametrize(("delay", "words"), [(2, "2 steps later"), (1, "1 step later"), (-1, "1 step before it")])
def test_a_delay_is_found(delay, words):
    text = notes(delay=delay)
    assert f"left goes with the change of p {words}" in text
    assert f"right goes with the change of q {words}" in text


def test_delta_and_absolute_actions_are_told_apart():
    assert notes() == (
        "left (p), right (q) look like changes: delta actions or velocities, in proportion to how far the observation "
        "moves"
    )
    assert notes(absolute=True).startswith("left (p), right (q) look like targets: absolute actions")


def test_another_order_of_joints_is_found():
    assert "in another order than their own (left moves q, right moves p)" in notes(order=(1, 0))
    assert "another order" not in notes()


def test_angles_that_wrap_are_found():
    steps = np.arange(500)
    turning = (0.3 * steps + np.pi) % (2 * np.pi) - np.pi
    degrees = (7 * steps) % 360
    observation = np.stack([turning, degrees, np.sin(0.3 * steps), 10 * turning], -1)
    found = find_wraps(observation, np.diff(observation, axis=0))
    assert {number: words for number, (words, _) in found.items()} == {0: "2 pi", 1: "360"}
    assert found[0][1] == np.sum(np.abs(np.diff(turning)) > 5)


def test_rows_that_are_too_few_or_never_change_say_nothing():
    state, action, last = move()
    assert relate(state[:20], action[:20], last[:20]) is None
    assert notes_on_actions(None, {}) == []
    still = relate(np.ones_like(state), action, last)
    assert still.change.shape == (len(LAGS), 2, 3)
    assert not still.change.any()


def test_correlations_are_those_of_numpy():
    left, right = np.random.default_rng(0).normal(size=(2, 200, 2))
    right += left
    np.testing.assert_allclose(correlate(left, right), np.corrcoef(left.T, right.T)[:2, 2:], atol=1e-12)


def test_a_sample_takes_rows_until_it_is_full(monkeypatch):
    monkeypatch.setattr("drol.data.importing.relations.MOST_ROWS", 1000)
    state, action, last = move()
    sample = RowSample()
    for part in np.array_split(np.arange(ROWS), 10):
        rows = {"observation": state[part], "action": action[part], "last": last[part]}
        sample.add(rows | {"reward": last[part], "continues": last[part]})
    assert sample.rows == 1000
    np.testing.assert_allclose(sample.relations().now, relate(state[:1000], action[:1000], last[:1000]).now)
    assert RowSample().relations() is None
