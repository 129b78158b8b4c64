"""Stack and crop frames when a batch is sampled, so that each frame is stored once, as bytes.

The released code of the FQL family has the same defaults for OGBench's visual tasks: 3 frames, crops with
probability 0.5.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.errors import InputError
from drol.transition import Transition

FRAME_STACK = 3  # frames in one observation of a visual task
CROP_PROBABILITY = 0.5
CROP_PADDING = 3  # pixels, the largest shift of a crop


def rows_before(last: Array, row: Array, count: int) -> Array:
    """Return each row and the rows before it [..., count], oldest first; repeat the first row of a trajectory."""
    rows = [row]
    while len(rows) < count:
        is_first = (rows[-1] == 0) | last[rows[-1] - 1]
        rows.append(jnp.where(is_first, rows[-1], rows[-1] - 1))
    return jnp.stack(rows[::-1], -1)


def stack(frames: Array) -> Array:
    """Stack frames [batch, count, ..., channels] along the channels: [batch, ..., count * channels], oldest first."""
    frames = jnp.moveaxis(frames, 1, -2)
    return frames.reshape(*frames.shape[:-2], -1)


def crop(images: Array, shift: Array) -> Array:
    """Crop images [batch, height, width, channels] to a window moved by [batch, 2] pixels, with edge padding."""
    batch, height, width = images.shape[:3]
    row = jnp.clip(jnp.arange(height) + shift[:, :1], 0, height - 1)  # [batch, height]
    column = jnp.clip(jnp.arange(width) + shift[:, 1:], 0, width - 1)  # [batch, width]
    return images[jnp.arange(batch)[:, None, None], row[:, :, None], column[:, None, :]]


def random_crop(key: Array, batch: Transition, probability: float) -> Transition:
    """Crop all images of a batch with the given probability, otherwise none.

    Each transition has its own shift. Its observation, its next observation and all their frames share this shift.
    """
    chance_key, shift_key = jax.random.split(key)
    shift = jax.random.randint(shift_key, (len(batch.observation), 2), -CROP_PADDING, CROP_PADDING + 1)
    shift = jnp.where(jax.random.bernoulli(chance_key, probability), shift, 0)
    return eqx.tree_at(
        lambda batch: (batch.observation, batch.next_observation),
        batch,
        (crop(batch.observation, shift), crop(batch.next_observation, shift)),
    )


def is_image(observation: Array | np.ndarray) -> bool:
    """Return whether the rows of an array are images; otherwise they are vectors."""
    return observation.ndim == 4


def check_images(observation: np.ndarray, frame_stack: int, crop_probability: float) -> None:
    """Raise `InputError` unless observations are vectors, or images of bytes with valid options.

    Vectors cannot be stacked or cropped.
    """
    if observation.ndim not in (2, 4):
        raise InputError(
            f"observation has shape {observation.shape}; it must be [rows, size] or [rows, height, width, channels]"
        )
    if is_image(observation) and observation.dtype != np.uint8:
        raise InputError(f"images have type {observation.dtype}; they must be uint8, with values from 0 to 255")
    if type(frame_stack) is not int or frame_stack < 1:
        raise InputError(f"frame_stack is {frame_stack}; it must be a whole number of at least 1")
    if not 0 <= crop_probability <= 1:
        raise InputError(f"crop_probability is {crop_probability}; it must lie in [0, 1]")
    if not is_image(observation) and (frame_stack > 1 or crop_probability > 0):
        raise InputError(
            f"observations of shape {observation.shape[1:]} are not images; "
            f"frame_stack is {frame_stack} and must be 1, crop_probability is {crop_probability} and must be 0"
        )


def check_standardisable(observation: Array | np.ndarray) -> None:
    """Raise `InputError` for images, since their encoder scales the bytes itself."""
    if is_image(observation):
        raise InputError("images cannot be standardised, their encoder scales them; leave standardise_observations off")
