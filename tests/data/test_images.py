import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_batch, random_rows

from drol.data.dataset import Dataset
from drol.data.images import CROP_PADDING, check_standardisable, crop, random_crop, rows_before, stack
from drol.errors import InputError
from drol.transition import Transition

BATCH, HEIGHT, WIDTH, CHANNELS = 4, 9, 8, 2
shifts = st.lists(st.tuples(*[st.integers(-CROP_PADDING, CROP_PADDING)] * 2), min_size=BATCH, max_size=BATCH)
jitted_crop = jax.jit(crop)


def random_images(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def padded_crop(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """Pad with the edges, then cut a window of the old size out."""
    height, width, _ = image.shape
    padded = np.pad(image, ((CROP_PADDING,) * 2, (CROP_PADDING,) * 2, (0, 0)), mode="edge")
    top, left = CROP_PADDING + down, CROP_PADDING + right
    return padded[top : top + height, left : left + width]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1000), shift=shifts)
def test_a_crop_is_a_window_of_the_image_padded_with_its_edges(seed, shift):
    images = random_images(seed, BATCH, HEIGHT, WIDTH, CHANNELS)
    found = np.asarray(jitted_crop(images, np.asarray(shift)))
    assert found.dtype == np.uint8
    for image, cropped, (down, right) in zip(images, found, shift, strict=True):
        np.testing.assert_array_equal(cropped, padded_crop(image, down, right))


def coordinates(rows: int) -> Transition:
    """A batch of images whose pixels hold their own place, so that a shift can be read from the middle one."""
    place = np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij"), -1)  # [16, 16, 2]
    images = jnp.asarray(np.broadcast_to(place, (rows, 16, 16, 2)), jnp.uint8)
    batch = random_batch(rows)
    return Transition(
        images, batch.action, batch.reward, batch.continues, 100 + images, batch.next_action, batch.reward
    )


@pytest.fixture(scope="module")
def drawn():
    """The shifts of 100 batches of 49 that are cropped with probability 0, 0.5 and 1."""
    batch = coordinates(49)

    @jax.jit
    def shifts_of(keys, probability):
        after = jax.vmap(lambda key: random_crop(key, batch, probability))(keys)
        return [each[:, :, 8, 8].astype(int) for each in (after.observation, after.next_observation - 100)]

    keys = jax.random.split(jax.random.key(0), 100)
    return {
        probability: [np.asarray(each) - 8 for each in shifts_of(keys, probability)] for probability in (0.0, 0.5, 1.0)
    }


def test_a_transition_has_one_shift_for_both_of_its_observations(drawn):
    for first, second in drawn.values():
        np.testing.assert_array_equal(first, second)


def test_shifts_are_uniform_over_the_window(drawn):
    shift, _ = drawn[1.0]  # [100, 49, 2]
    assert np.abs(shift).max() == CROP_PADDING
    count = np.zeros((7, 7), int)
    np.add.at(count, tuple((shift + CROP_PADDING).reshape(-1, 2).T), 1)
    assert np.abs(count - 100).max() < 50  # five standard deviations of a mean of 100


def test_a_batch_is_cropped_whole_or_not_at_all(drawn):
    whole = (drawn[0.5][0] != 0).any((1, 2))  # [100]
    assert 25 < whole.sum() < 75  # five standard deviations
    rows = (drawn[0.5][0][whole] != 0).any(-1)  # a shift of zero is one of 49
    assert rows.mean() > 0.95
    assert not drawn[0.0][0].any()


def test_a_crop_changes_the_images_alone():
    batch = coordinates(5)
    after = jax.jit(lambda key: random_crop(key, batch, 1.0))(jax.random.key(1))
    for name in ("action", "reward", "continues", "next_action", "next_action_known"):
        np.testing.assert_array_equal(getattr(after, name), getattr(batch, name))
    assert after.observation.dtype == np.uint8
    assert (np.asarray(after.observation) != np.asarray(batch.observation)).any()


def test_rows_before_a_trajectory_are_its_first():
    last = np.asarray([False, False, True, False, True])  # rows 0 to 2, and 3 and 4
    found = rows_before(jnp.asarray(last), jnp.arange(5), 3)
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 1], [0, 1, 2], [3, 3, 3], [3, 3, 4]])


def test_frames_are_stacked_along_the_channels_oldest_first():
    frames = random_images(0, 2, 3, HEIGHT, WIDTH, CHANNELS)
    found = np.asarray(stack(jnp.asarray(frames)))
    assert found.shape == (2, HEIGHT, WIDTH, 3 * CHANNELS)
    np.testing.assert_array_equal(found, np.concatenate([frames[:, 0], frames[:, 1], frames[:, 2]], -1))


@pytest.mark.parametrize(
    ("observation", "options", "message"),
    [
        (
            np.zeros((10, 8, 8), np.float32),
            {},
            "observation has shape (10, 8, 8); it must be [rows, size] or [rows, height, width, channels]",
        ),
        (
            np.zeros((10, 8, 8, 3), np.float32),
            {},
            "images have type float32; they must be uint8, with values from 0 to 255",
        ),
        (
            np.zeros((10, 8, 8, 3), np.uint8),
            {"frame_stack": 0},
            "frame_stack is 0; it must be a whole number of at least 1",
        ),
        (
            np.zeros((10, 8, 8, 3), np.uint8),
            {"crop_probability": 1.5},
            "crop_probability is 1.5; it must lie in [0, 1]",
        ),
        (
            np.zeros((10, 3), np.float32),
            {"frame_stack": 3},
            "observations of shape (3,) are not images; "
            "frame_stack is 3 and must be 1, crop_probability is 0.0 and must be 0",
        ),
    ],
)
def test_what_is_not_an_image_is_refused_in_one_line(observation, options, message):
    with pytest.raises(InputError) as caught:
        Dataset.from_rows(**(random_rows([5, 3]) | {"observation": observation}), **options)
    assert str(caught.value) == message


def test_images_cannot_be_standardised():
    check_standardisable(jnp.zeros((2, 3)))
    with pytest.raises(InputError, match="images cannot be standardised, their encoder scales them; leave"):
        check_standardisable(jnp.zeros((2, 8, 8, 3), jnp.uint8))
