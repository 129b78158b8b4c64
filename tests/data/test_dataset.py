import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import episode_lengths
from toys import random_rows

from drol.data.actions import ACTION_LIMIT
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.machine import aligned
from drol.transition import Spec

ROWS = 24  # of every random dataset, so that few shapes are compiled


@settings(deadline=None, max_examples=60)
@given(lengths=episode_lengths(ROWS), seed=st.integers(0, 100))
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


@settings(deadline=None, max_examples=20)
@given(lengths=episode_lengths(ROWS))
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
    standardised = dataset.standardised(Standardisation(mean, deviation))
    before, after = (each.take(np.arange(16)) for each in (dataset, standardised))
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


def test_arrays_that_are_overwritten_give_the_same_dataset():
    rows = random_rows([5, 3])
    rows["action"] = (rows["action"] * 1.3).clip(-1, 1)
    before = rows["action"].copy()
    kept = Dataset.from_rows(**rows)
    np.testing.assert_array_equal(rows["action"], before)
    assert Dataset.from_rows(**rows, overwrite=True).fingerprint() == kept.fingerprint()


def test_aligned_arrays_that_are_overwritten_are_not_copied():
    rows = random_rows([5, 3])
    action = aligned(rows["action"].shape, np.dtype(np.float32))
    action[:] = rows["action"]
    dataset = Dataset.from_rows(**(rows | {"action": action}), overwrite=True)
    if jax.devices()[0].platform == "cpu":
        assert dataset.action.unsafe_buffer_pointer() == action.ctypes.data


def test_data_in_memory_is_on_the_device_and_all_of_it_is_some_of_it(dataset):
    assert dataset.on_device is dataset
    assert dataset.leading(1) is dataset
    assert dataset.some(1) is dataset


def test_moments_are_those_of_all_rows(dataset):
    mean, deviation = dataset.moments()
    np.testing.assert_allclose(mean, np.asarray(dataset.observation).mean(0), atol=1e-7)
    np.testing.assert_allclose(deviation, np.asarray(dataset.observation).std(0), rtol=1e-6)
    standardised = dataset.standardised(Standardisation.from_moments(mean, deviation)).observation
    np.testing.assert_allclose(standardised.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standardised.std(0), 1, atol=1e-6)


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


def test_errors_of_python_name_arguments_and_no_flags():
    arrays = {"observation": np.zeros((5, 1)), "action": np.zeros((5, 2)), "reward": np.ones(5)}
    with pytest.raises(InputError, match=r"^nothing says where episodes end; pass terminal, timeout or episode$"):
        Dataset.from_arrays(**arrays)
    with pytest.raises(InputError, match="pass ends terminal or ends timeout if all are alike") as caught:
        Dataset.from_arrays(**arrays, terminal=[0, 1, 0, 0, 0])
    assert "--" not in str(caught.value)
