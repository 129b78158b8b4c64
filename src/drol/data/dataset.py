"""Transitions on the device, each observation stored once."""

import hashlib
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.errors import InputError
from drol.types import Spec, Transition

ACTION_LIMIT = 1 - 1e-5  # data actions are clipped a little inside the box


class Dataset(eqx.Module):
    """N transitions laid out as rows of trajectories: the next observation of a row is the row after it.

    A trajectory of T transitions is T + 1 rows; its last row only holds the final observation. `sample` and `take`
    are the only doors, so the storage stays free to change.
    """

    observation: Array  # [rows, *observation]
    action: Array  # [rows, action]; on last rows that of the next trajectory
    reward: Array  # [rows]
    continues: Array  # [rows], 0 where the task ended
    last: Array  # [rows] bool, true on the last row of each trajectory
    start: Array  # [N], the row of each transition

    @classmethod
    def from_rows(
        cls,
        observation: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        continues: np.ndarray,
        last: np.ndarray,
    ) -> Self:
        """A dataset from trajectories laid end to end; where `last` is true all but the observation is ignored."""
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
        for name, array in arrays.items():
            checked = array if name == "observation" else array[~last]
            if not np.isfinite(checked).all():
                count = np.size(checked) - np.isfinite(checked).sum()
                raise InputError(f"{name} has {count} values that are NaN or infinite; every value must be finite")
        if action.ndim != 2:
            raise InputError(f"action has shape {action.shape}; it must be [rows, action size]")
        largest = np.abs(action[~last]).max()
        if largest > 1 + 1e-6:
            raise InputError(f"actions reach {largest:.6g}; they must lie in [-1, 1], so scale them first")
        action = np.clip(action, -ACTION_LIMIT, ACTION_LIMIT)
        # What follows a last transition is not known; the released codes read the action of the next trajectory.
        after = np.minimum(np.flatnonzero(last) + 1, rows - 2)
        action[last] = action[after]
        return cls(
            observation=jnp.asarray(observation, jnp.float32),
            action=jnp.asarray(action, jnp.float32),
            reward=jnp.asarray(np.where(last, 0, reward), jnp.float32),
            continues=jnp.asarray(np.where(last, 0, continues), jnp.float32),
            last=jnp.asarray(last),
            start=jnp.asarray(np.flatnonzero(~last), jnp.int32),
        )

    @property
    def size(self) -> int:
        return len(self.start)

    @property
    def spec(self) -> Spec:
        return Spec(self.observation.shape[1:], self.action.shape[1])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in jax.tree.leaves(self))

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Transitions drawn uniformly, with replacement."""
        return self.take(jax.random.randint(key, (batch_size,), 0, self.size))

    def take(self, index: Array) -> Transition:
        """The transitions with these numbers."""
        row = self.start[index]
        return Transition(
            observation=self.observation[row],
            action=self.action[row],
            reward=self.reward[row],
            continues=self.continues[row],
            next_observation=self.observation[row + 1],
            next_action=self.action[row + 1],
            next_action_known=1.0 - self.last[row + 1],
        )

    def standardised(self, mean: Array, deviation: Array) -> Self:
        """The same transitions with observations shifted and scaled."""
        return eqx.tree_at(lambda data: data.observation, self, (self.observation - mean) / deviation)

    def fingerprint(self) -> str:
        """A hash of every value: the same data has the same fingerprint, however it was stored."""
        digest = hashlib.sha256()
        for name in ("observation", "action", "reward", "continues", "last"):
            array = np.ascontiguousarray(getattr(self, name))
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()
