"""Transitions on the device, each observation stored once."""

import hashlib
from collections.abc import Iterator
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from drol.data.actions import ACTION_LIMIT
from drol.data.files.episodes import assemble
from drol.data.files.npz import aligned
from drol.data.files.options import Reading
from drol.data.images import check_images, check_standardisable, is_image, random_crop, rows_before, stack
from drol.errors import InputError
from drol.types import Spec, Transition

PIECE_BYTES = 1 << 20  # looked at at once, so that checking a dataset takes no memory beside it


class Dataset(eqx.Module):
    """N transitions laid out as rows of trajectories: the next observation of a row is the row after it.

    A trajectory of T transitions is T + 1 rows; its last row only holds the final observation. `sample` and `take`
    are the only doors, so the storage stays free to change. Images stay bytes, and an observation of several frames is
    put together when it is drawn.
    """

    observation: Array  # [rows, *observation], of images a single frame
    action: Array  # [rows, action]; on last rows that of the next trajectory
    reward: Array  # [rows]
    continues: Array  # [rows], 0 where the task ended
    last: Array  # [rows] bool, true on the last row of each trajectory
    start: Array  # [N], the row of each transition
    frame_stack: int = eqx.field(static=True, default=1)  # rows that make one observation, along its last axis
    crop_probability: float = eqx.field(static=True, default=0.0)  # that `sample` shifts the images of a batch

    @classmethod
    def from_rows(
        cls,
        observation: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        continues: np.ndarray,
        last: np.ndarray,
        frame_stack: int = 1,
        crop_probability: float = 0.0,
        overwrite_action: bool = False,
    ) -> Self:
        """A dataset from trajectories laid end to end; where `last` is true all but the observation is ignored.

        `overwrite_action`: the array of actions is not needed afterwards, so it may be clipped in place.
        """
        check_images(observation, frame_stack, crop_probability)
        arrays = {"observation": observation, "action": action, "reward": reward, "continues": continues}
        rows = len(observation)
        for name, array in {**arrays, "last": last}.items():
            if len(array) != rows:
                raise InputError(f"{name} has {len(array)} rows where observation has {rows}; they must be equal")
        for name, array in {"reward": reward, "continues": continues, "last": last}.items():
            if np.ndim(array) != 1:
                raise InputError(f"{name} has shape {np.shape(array)}; it must be [rows]")
        last = np.asarray(last, bool)
        if rows < 2 or not last[-1] or last.all():
            raise InputError(
                f"{rows} rows with {last.sum()} ends hold no transition; a trajectory is at least two rows"
            )
        if action.ndim != 2:
            raise InputError(f"action has shape {action.shape}; it must be [rows, action size]")
        for name, array in arrays.items():
            check_finite(name, array, None if name == "observation" else last)
        # What follows a last transition is not known; the released codes read the action of the next trajectory.
        clipped = clip_actions(action, last, overwrite_action)
        clipped[last] = clipped[np.minimum(np.flatnonzero(last) + 1, rows - 2)]
        return cls(
            observation=jnp.asarray(observation, jnp.uint8 if is_image(observation) else jnp.float32),
            action=jnp.asarray(clipped, jnp.float32),  # with its type named, jax takes over an aligned array
            reward=jnp.asarray(cleared(reward, last), jnp.float32),
            continues=jnp.asarray(cleared(continues, last), jnp.float32),
            last=jnp.asarray(last),
            start=jnp.asarray(np.flatnonzero(~last), jnp.int32),
            frame_stack=frame_stack,
            crop_probability=float(crop_probability),
        )

    @classmethod
    def from_arrays(
        cls,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        terminal: ArrayLike | None = None,
        timeout: ArrayLike | None = None,
        episode: ArrayLike | None = None,
        next_observation: ArrayLike | None = None,
        ends: str | None = None,
    ) -> Self:
        """A dataset from flat arrays with a row for each step, in order; ends are understood as by `drol data import`.

        `terminal` marks true ends, `timeout` cuts; `episode` numbers episodes. Where these leave it open, `ends` is
        "terminal" or "timeout" for all of them, or "flags": terminals are true ends, all others cuts.
        """
        fields = {"observation": observation, "action": action, "reward": reward, "terminal": terminal}
        fields |= {"timeout": timeout, "episode": episode, "next_observation": next_observation}
        arrays = {}
        for name, values in fields.items():
            try:
                if values is not None:
                    arrays[name] = np.asarray(values)
            except ValueError as error:
                raise InputError(f"{name} has steps of different shapes ({error}); all must be alike") from error
        rows, _ = assemble(arrays, Reading(ends=ends))
        return cls.from_rows(rows["observation"], rows["action"], rows["reward"], rows["continues"], rows["last"])

    @property
    def size(self) -> int:
        return len(self.start)

    @property
    def spec(self) -> Spec:
        *rest, channels = self.observation.shape[1:]
        return Spec((*rest, channels * self.frame_stack), self.action.shape[1])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in jax.tree.leaves(self))

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Transitions drawn uniformly, with replacement; their images are cropped with `crop_probability`."""
        if self.crop_probability == 0:
            return self.take(jax.random.randint(key, (batch_size,), 0, self.size))
        index_key, crop_key = jax.random.split(key)
        batch = self.take(jax.random.randint(index_key, (batch_size,), 0, self.size))
        return random_crop(crop_key, batch, self.crop_probability)

    def take(self, index: Array) -> Transition:
        """The transitions with these numbers, as they are."""
        row = self.start[index]
        # An observation and the next one share all frames but one, so both are read together.
        frames = self.observation[rows_before(self.last, row + 1, self.frame_stack + 1)]  # [batch, frames + 1, ...]
        return Transition(
            observation=stack(frames[:, :-1]),
            action=self.action[row],
            reward=self.reward[row],
            continues=self.continues[row],
            next_observation=stack(frames[:, 1:]),
            next_action=self.action[row + 1],
            next_action_known=1.0 - self.last[row + 1],
        )

    def standardised(self, mean: Array, deviation: Array) -> Self:
        """The same transitions with observations shifted and scaled; images are refused."""
        check_standardisable(self.observation)
        return eqx.tree_at(lambda data: data.observation, self, (self.observation - mean) / deviation)

    def fingerprint(self) -> str:
        """A hash of every value: the same data has the same fingerprint, however it was stored.

        How images are drawn from it counts as well, since other frames or crops make another run.
        """
        digest = hashlib.sha256()
        for name in ("observation", "action", "reward", "continues", "last"):
            array = np.ascontiguousarray(getattr(self, name))
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)  # not a copy: images may fill half of the memory
        if self.frame_stack > 1 or self.crop_probability > 0:
            digest.update(f"frame_stack {self.frame_stack} crop_probability {self.crop_probability}".encode())
        return digest.hexdigest()


def check_finite(name: str, array: np.ndarray, last: np.ndarray | None) -> None:
    """Refuse NaN and infinity, but not where `last` is true. Piece by piece, as all that follows: see `PIECE_BYTES`."""
    if array.dtype == np.uint8:  # a byte is always finite, and of images there are gigabytes
        return
    count = 0
    for piece in pieces(array):
        wrong = ~np.isfinite(array[piece])
        if wrong.any():
            count += int(wrong.sum() if last is None else wrong[~last[piece]].sum())
    if count:
        raise InputError(f"{name} has {count} values that are NaN or infinite; every value must be finite")


def clip_actions(action: np.ndarray, last: np.ndarray, overwrite: bool) -> np.ndarray:
    """Actions inside (-1, 1) as float32; those beyond [-1, 1] are refused, but not on last rows."""
    in_place = overwrite and action.dtype == np.float32 and action.flags.writeable
    clipped = action if in_place else aligned(action.shape, np.dtype(np.float32))
    largest = 0.0
    for piece in pieces(action):
        largest = max(largest, np.abs(action[piece][~last[piece]]).max(initial=0))
        clipped[piece] = np.clip(action[piece], -ACTION_LIMIT, ACTION_LIMIT)
    if largest > 1 + 1e-6:
        raise InputError(f"actions reach {largest:.6g}; they must lie in [-1, 1], so scale them first")
    return clipped


def cleared(values: np.ndarray, last: np.ndarray) -> np.ndarray:
    """A copy as float32 with 0 on last rows, which jax takes over as it is."""
    copy = aligned(values.shape, np.dtype(np.float32))
    copy[:] = values
    copy[last] = 0
    return copy


def pieces(array: np.ndarray) -> Iterator[slice]:
    """Slices of rows that cover an array."""
    rows = max(1, PIECE_BYTES * len(array) // max(1, array.nbytes))
    return (slice(first, first + rows) for first in range(0, len(array), rows))
