import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import episode_lengths
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.transition import Spec

ROWS = 24  # of every random dataset, so that few shapes are compiled


def image_rows(lengths, seed=0):
    rows = random_rows(lengths, seed)
    pictures = np.random.default_rng(seed).integers(0, 256, (len(rows["last"]), 4, 3, 2), np.uint8)
    return rows | {"observation": pictures}


@pytest.mark.parametrize("frame_stack", [1, 2, 3])
@settings(deadline=None, max_examples=20)
@given(lengths=episode_lengths(ROWS), seed=st.integers(0, 100))
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
    dataset = Dataset.from_rows(**image_rows([5]))
    with pytest.raises(InputError, match="images cannot be standardised"):
        dataset.standardised(Standardisation.identity(dataset.spec))
    with pytest.raises(InputError, match="images cannot be standardised"):
        dataset.moments()
