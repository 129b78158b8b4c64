import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data import dataset as dataset_module
from drol.data.actions import ACTION_LIMIT
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.types import Spec

pytestmark = pytest.mark.usefixtures("quick_compile")

ROWS = 24  # of every random dataset, so that few shapes are compiled


@st.composite
def episode_lengths(draw):
    """Numbers of transitions of trajectories that fill the rows."""
    lengths, left = [], ROWS
    while left:
        rows = draw(st.integers(2, left))
        rows = left if left - rows == 1 else rows  # one row would hold no transition
        lengths.append(rows - 1)
        left -= rows
    return lengths


@settings(deadline=None, max_examples=60)
@given(lengths=episode_lengths(), seed=st.integers(0, 100))
def test_take_gives_back_each_transition(lengths, seed):
    rows = random_rows(lengths, seed)
    dataset = Dataset.from_rows(**rows)
    assert dataset.size == sum(lengths)
    assert dataset.spec == Spec((3,), 2)
    found = jax.tree.map(np.asarray, dataset.take(np.arange(ROWS) % dataset.size))
    number, first = 0, 0
    for length in lengths:
        for step in range(length):
            row = first + step
            np.testing.assert_array_equal(found.observation[number], rows["observation"][row])
            np.testing.assert_array_equal(found.action[number], rows["action"][row])
            assert found.reward[number] == rows["reward"][row]
            assert found.continues[number] == rows["continues"][row]
            # The row after the last transition is of the same trajectory, and no action is known there.
            np.testing.assert_array_equal(found.next_observation[number], rows["observation"][row + 1])
            if step == length - 1:
                assert found.next_action_known[number] == 0
            else:
                assert found.next_action_known[number] == 1
                np.testing.assert_array_equal(found.next_action[number], rows["action"][row + 1])
            number += 1
        first += length + 1
    assert number == dataset.size


def image_rows(lengths, seed=0):
    rows = random_rows(lengths, seed)
    pictures = np.random.default_rng(seed).integers(0, 256, (len(rows["last"]), 4, 3, 2), np.uint8)
    return rows | {"observation": pictures}


@pytest.mark.parametrize("frame_stack", [1, 2, 3])
@settings(deadline=None, max_examples=20)
@given(lengths=episode_lengths(), seed=st.integers(0, 100))
def test_images_are_stacked_within_their_trajectory(frame_stack, lengths, seed):
    rows = image_rows(lengths, seed)
    dataset = Dataset.from_rows(**rows, frame_stack=frame_stack)
    assert dataset.spec == Spec((4, 3, 2 * frame_stack), 2)
    found = jax.tree.map(np.asarray, dataset.take(np.arange(ROWS) % dataset.size))
    assert found.observation.dtype == found.next_observation.dtype == np.uint8
    number, first = 0, 0
    for length in lengths:
        pictures = rows["observation"][first : first + length + 1]
        # What an environment shows whose first picture is repeated.
        history = [pictures[0]] * (frame_stack - 1) + list(pictures)
        seen = [np.concatenate(history[step : step + frame_stack], -1) for step in range(length + 1)]
        for step in range(length):
            np.testing.assert_array_equal(found.observation[number], seen[step])
            np.testing.assert_array_equal(found.next_observation[number], seen[step + 1])
            assert found.reward[number] == rows["reward"][first + step]
            number += 1
        first += length + 1


def test_a_picture_is_stored_once_as_bytes():
    rows = image_rows([20, 30])
    size = Dataset.from_rows(**rows).nbytes
    assert Dataset.from_rows(**rows, frame_stack=3, crop_probability=0.5).nbytes == size
    smaller = rows | {"observation": rows["observation"][:, :1]}
    assert size - Dataset.from_rows(**smaller).nbytes == 52 * 3 * 3 * 2


def test_sample_crops_and_take_does_not():
    rows = image_rows([20])
    whole, never = (Dataset.from_rows(**rows, crop_probability=probability) for probability in (1.0, 0.0))
    known = {picture.tobytes() for picture in rows["observation"]}

    def share_of_whole_pictures(batch):
        return np.mean([picture.tobytes() in known for picture in np.asarray(batch.observation)])

    key = jax.random.key(0)
    assert share_of_whole_pictures(jax.jit(lambda key: whole.sample(key, 49))(key)) < 0.3
    assert share_of_whole_pictures(jax.jit(lambda key: never.sample(key, 49))(key)) == 1
    assert share_of_whole_pictures(whole.take(np.arange(20))) == 1


def test_what_is_drawn_from_pictures_is_part_of_the_fingerprint():
    rows = image_rows([5, 3])
    options = ({}, {"frame_stack": 2}, {"frame_stack": 3}, {"crop_probability": 0.5})
    assert len({Dataset.from_rows(**rows, **each).fingerprint() for each in options}) == len(options)
    other = rows["observation"].copy()
    other[0, 0, 0, 0] ^= 1
    before, after = (Dataset.from_rows(**(rows | {"observation": each})) for each in (rows["observation"], other))
    assert before.fingerprint() != after.fingerprint()


def test_pictures_are_not_standardised():
    with pytest.raises(InputError, match="images cannot be standardised"):
        Dataset.from_rows(**image_rows([5])).standardised(jnp.zeros(1), jnp.ones(1))


@settings(deadline=None, max_examples=20)
@given(lengths=episode_lengths())
def test_what_is_on_last_rows_does_not_matter(lengths):
    rows = random_rows(lengths)
    odd = {name: array.copy() for name, array in rows.items()}
    for name in ("action", "reward", "continues"):
        odd[name][rows["last"]] = np.nan
    assert Dataset.from_rows(**odd).fingerprint() == Dataset.from_rows(**rows).fingerprint()


@pytest.fixture(scope="module")
def dataset():
    return Dataset.from_rows(**random_rows([5, 1, 10]))


def test_sample_draws_every_transition_equally_often(dataset):
    count = 16_000
    drawn = jax.jit(lambda key: dataset.sample(key, count))(jax.random.key(0))
    assert drawn.observation.shape == (count, 3)
    number = {tuple(row): index for index, row in enumerate(np.asarray(dataset.take(np.arange(16)).observation))}
    frequency = np.bincount([number[tuple(row)] for row in np.asarray(drawn.observation)], minlength=16)
    # Each of the 16 is drawn 1000 times in the mean; five standard deviations are 153.
    assert np.abs(frequency - 1000).max() < 153


def test_sample_follows_from_its_key(dataset):
    sample = jax.jit(lambda key: dataset.sample(key, 32))
    first, again, other = sample(jax.random.key(1)), sample(jax.random.key(1)), sample(jax.random.key(2))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert not np.array_equal(first.observation, other.observation)


def test_each_observation_is_stored_once():
    trajectories, length = 100, 1000
    rows = random_rows([length] * trajectories, observation_size=29, action_size=8)
    assert Dataset.from_rows(**rows).nbytes <= 1.3 * trajectories * length * (29 + 8) * 4


def test_actions_are_clipped_a_little_inside_the_box():
    rows = random_rows([4])
    rows["action"][:4, 0] = [1.0, -1.0, 1 + 1e-7, 0.5]
    found = np.asarray(Dataset.from_rows(**rows).take(np.arange(4)).action)
    np.testing.assert_array_equal(found[:, 0], np.float32([ACTION_LIMIT, -ACTION_LIMIT, ACTION_LIMIT, 0.5]))
    np.testing.assert_array_equal(found[:, 1], rows["action"][:4, 1])
    assert ACTION_LIMIT == 1 - 1e-5


def test_standardising_changes_observations_only(dataset):
    mean, deviation = jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([0.5, 1.0, 2.0])
    before, after = (each.take(np.arange(16)) for each in (dataset, dataset.standardised(mean, deviation)))
    np.testing.assert_allclose(after.observation, (before.observation - mean) / deviation, atol=1e-6)
    np.testing.assert_allclose(after.next_observation, (before.next_observation - mean) / deviation, atol=1e-6)
    same = [field.name for field in dataclasses.fields(before) if "observation" not in field.name]
    for name in same:
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(["observation", "action", "reward", "continues"]),
    row=st.integers(0, 4),
    column=st.integers(0, 1),
)
def test_any_other_value_has_another_fingerprint(name, row, column):
    rows = random_rows([5, 3])
    before = Dataset.from_rows(**rows).fingerprint()
    place = (row, column) if rows[name].ndim == 2 else row
    rows[name][place] = np.nextafter(rows[name][place], np.float32(0.5))
    assert Dataset.from_rows(**rows).fingerprint() != before


def test_the_fingerprint_depends_on_values_not_on_how_they_are_held():
    rows = random_rows([5, 3])
    fingerprint = Dataset.from_rows(**rows).fingerprint()
    held_otherwise = rows | {"observation": np.asfortranarray(rows["observation"]), "last": rows["last"].astype(float)}
    assert Dataset.from_rows(**held_otherwise).fingerprint() == fingerprint
    assert Dataset.from_rows(**random_rows([3, 5])).fingerprint() != fingerprint  # the same rows, cut elsewhere


def altered(name, change):
    rows = random_rows([5, 3])
    rows[name] = change(rows[name])
    return rows


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (altered("reward", lambda array: array[:-1]), "reward has 9 rows where observation has 10; they must be equal"),
        (altered("last", lambda array: array[:-1]), "last has 9 rows where observation has 10; they must be equal"),
        (altered("last", np.zeros_like), "10 rows with 0 ends hold no transition; a trajectory is at least two rows"),
        (altered("last", np.ones_like), "10 rows with 10 ends hold no transition; a trajectory is at least two rows"),
        (
            {name: array[-1:] for name, array in random_rows([5]).items()},
            "1 rows with 1 ends hold no transition; a trajectory is at least two rows",
        ),
        (
            altered("observation", lambda array: put(array, (5, slice(0, 2)), np.nan)),
            "observation has 2 values that are NaN or infinite; every value must be finite",
        ),
        (
            altered("reward", lambda array: put(array, 2, -np.inf)),
            "reward has 1 values that are NaN or infinite; every value must be finite",
        ),
        (altered("action", lambda array: array[:, 0]), "action has shape (10,); it must be [rows, action size]"),
        (
            altered("action", lambda array: put(array, (2, 1), 1.5)),
            "actions reach 1.5; they must lie in [-1, 1], so scale them first",
        ),
    ],
)
def test_unusable_rows_are_refused_in_one_line(rows, message):
    with pytest.raises(InputError) as caught:
        Dataset.from_rows(**rows)
    assert str(caught.value) == message


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_are_overwritten_only_where_that_is_allowed(dtype):
    rows = random_rows([5, 3])
    rows["action"] = (rows["action"] * 1.3).clip(-1, 1).astype(dtype)
    before = rows["action"].copy()
    kept = Dataset.from_rows(**rows)
    np.testing.assert_array_equal(rows["action"], before)
    overwritten = Dataset.from_rows(**rows, overwrite_action=True)
    assert overwritten.fingerprint() == kept.fingerprint()


@pytest.mark.parametrize("piece_bytes", [1, 50, 1 << 20])
def test_pieces_do_not_change_what_is_found(monkeypatch, piece_bytes):
    monkeypatch.setattr(dataset_module, "PIECE_BYTES", piece_bytes)
    rows = altered("observation", lambda array: put(put(array, (0, 0), np.nan), (9, 1), np.inf))
    with pytest.raises(InputError, match="observation has 2 values that are NaN"):
        Dataset.from_rows(**rows)
    rows = altered("action", lambda array: put(array, (8, 0), -1.25))
    with pytest.raises(InputError, match=r"actions reach 1\.25"):
        Dataset.from_rows(**rows)
    rows = altered("action", lambda array: put(array, (9, 0), np.nan))  # on the last row nothing is read
    assert np.isfinite(np.asarray(Dataset.from_rows(**rows).action)).all()


@pytest.mark.parametrize("name", ["reward", "continues", "last"])
def test_a_column_is_refused_where_one_number_for_each_row_is_wanted(name):
    with pytest.raises(InputError, match=rf"{name} has shape \(10, 1\)"):
        Dataset.from_rows(**altered(name, lambda array: array[:, None]))


def test_flat_arrays_become_transitions():
    observation = np.arange(5, dtype=np.float32)[:, None]
    arrays = {"observation": observation, "action": np.zeros((5, 2), np.float32), "reward": np.ones(5, np.float32)}
    dataset = Dataset.from_arrays(**arrays, terminal=[0, 1, 0, 0, 0], timeout=[0, 0, 0, 0, 1])
    assert dataset.size == 4
    found = jax.tree.map(np.asarray, dataset.take(np.arange(4)))
    assert found.observation[:, 0].tolist() == [0, 1, 2, 3]
    assert found.continues.tolist() == [1, 0, 1, 1]
    assert found.next_observation[:, 0].tolist() == [1, 1, 3, 4]
    assert found.next_action_known.tolist() == [1, 0, 1, 0]
    with pytest.raises(InputError, match="it is not clear which ends are true ends"):
        Dataset.from_arrays(**arrays, terminal=[0, 1, 0, 0, 0])
    with pytest.raises(InputError, match="observation has steps of different shapes"):
        Dataset.from_arrays([[1], [1, 2]], arrays["action"], arrays["reward"], ends="timeout", terminal=[0] * 5)
