import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.replay import Experience, Replay

OFFLINE = Dataset.from_rows(**random_rows([3, 4]))
CAPACITY = 12


def observation(number: int) -> np.ndarray:
    return np.full(3, number, np.float32)


def play(events: list[str], capacity: int | None = None) -> tuple[Experience, list[tuple[int, int, bool]]]:
    """Experience after some events, and its transitions as (observation, next observation, next action known)."""
    experience, transitions = Experience.empty(capacity or CAPACITY, OFFLINE).begin(observation(0)), []
    for number, event in enumerate(events, 1):
        if event == "begin":
            experience = experience.begin(observation(number))
            if transitions:
                transitions[-1] = (*transitions[-1][:2], False)
        elif capacity or len(transitions) < CAPACITY:
            present = int(experience.present[0])
            if transitions and transitions[-1][1] == present:
                transitions[-1] = (*transitions[-1][:2], True)
            experience = experience.add(
                np.full(2, number / 100, np.float32), np.float32(number), np.float32(1), observation(number)
            )
            transitions.append((present, number, False))
    return experience, transitions


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["begin", "add", "add"]), max_size=30))
def test_what_is_added_comes_back_and_no_transition_crosses_episodes(events):
    experience, expected = play(events)
    assert int(experience.size) == len(expected)
    found = experience.take(np.arange(len(expected)))
    for row, (now, following, known) in enumerate(expected):
        assert found.observation[row, 0] == now
        assert found.next_observation[row, 0] == following
        assert found.reward[row] == following
        assert found.next_action_known[row] == known
        if known:
            np.testing.assert_allclose(found.next_action[row], found.action[row + 1])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["begin", "add", "add"]), max_size=40), st.integers(1, 4))
def test_when_it_is_full_the_oldest_are_overwritten(events, capacity):
    experience, expected = play(events, capacity)
    held = int(experience.held)
    assert held == min(len(expected), capacity)
    assert int(experience.size) == len(expected)
    found = experience.take(np.arange(held))
    oldest = len(expected) - held
    for number, (now, following, known) in enumerate(expected[oldest:], oldest):
        row = number % capacity
        assert (found.observation[row, 0], found.next_observation[row, 0]) == (now, following)
        assert found.reward[row] == following
        assert found.next_action_known[row] == known
        if known:
            np.testing.assert_allclose(found.next_action[row], found.action[(row + 1) % capacity])


def test_nothing_is_written_when_nothing_happened():
    before = (
        Experience.empty(4, OFFLINE).begin(observation(1)).add(np.ones(2), np.ones(()), np.ones(()), observation(2))
    )
    after = before.add(np.ones(2), np.ones(()), np.ones(()), observation(3), when=False).begin(
        observation(4), when=False
    )
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_shortest_episodes_fill_the_capacity_exactly():
    experience = Experience.empty(3, OFFLINE)
    for number in range(3):
        experience = experience.begin(observation(number)).add(
            np.zeros(2), np.asarray(number), np.zeros(()), observation(9)
        )
    np.testing.assert_array_equal(experience.take(np.arange(3)).reward, [0, 1, 2])
    np.testing.assert_array_equal(experience.take(np.arange(3)).observation[:, 0], [0, 1, 2])


def shares(experience: Experience, balanced: bool) -> float:
    """The share of a large batch that is experience, whose rewards are at least 100."""
    batch = Replay(OFFLINE, experience, balanced).sample(jax.random.key(0), 10_000)
    return float((batch.reward >= 100).mean())


def test_batches_keep_all_transitions_alike_or_balance_old_and_new():
    experience = Experience.empty(CAPACITY, OFFLINE).begin(observation(0))
    assert shares(experience, balanced=False) == shares(experience, balanced=True) == 0
    for number in range(3):
        experience = experience.add(np.zeros(2), np.asarray(100.0 + number), np.ones(()), observation(number))
    assert abs(shares(experience, balanced=False) - 3 / (7 + 3)) < 0.02
    assert shares(experience, balanced=True) == 0.5


def test_every_transition_of_both_kinds_is_drawn():
    experience = Experience.empty(CAPACITY, OFFLINE).begin(observation(0))
    for number in range(3):
        experience = experience.add(np.zeros(2), np.asarray(100.0 + number), np.ones(()), observation(number))
    batch = Replay(OFFLINE, experience, False).sample(jax.random.key(1), 2_000)
    rewards = {float(reward) for reward in batch.reward}
    offline = OFFLINE.take(jnp.arange(7))
    assert rewards == {float(reward) for reward in offline.reward} | {100.0, 101.0, 102.0}


def test_images_are_kept_as_the_environment_gives_them_and_cropped_with_the_rest():
    frames = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    rows = random_rows([5])
    offline = Dataset.from_rows(**(rows | {"observation": frames}), frame_stack=2, crop_probability=1.0)
    stacked = np.arange(8 * 8 * 6, dtype=np.uint8).reshape(8, 8, 6)
    experience = Experience.empty(4, offline).begin(stacked).add(np.zeros(2), np.asarray(100.0), np.ones(()), stacked)
    np.testing.assert_array_equal(experience.take(np.arange(1)).observation[0], stacked)
    batch = Replay(offline, experience, True).sample(jax.random.key(0), 64)
    assert batch.observation.dtype == np.uint8
    assert batch.observation.shape == (64, 8, 8, 6)
    new = np.asarray(batch.observation)[np.asarray(batch.reward) == 100]
    assert len(new) == 32
    assert len({image.tobytes() for image in new}) > 5  # each image has a different shift
