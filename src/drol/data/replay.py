"""Store the transitions of online training, and draw batches that mix them with the offline data."""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.data.dataset import Dataset
from drol.data.images import random_crop
from drol.transition import Transition

ArrayLike = Array | np.ndarray | bool


class Experience(eqx.Module):
    """A ring buffer of transitions laid out as in `Dataset`; the row `head` holds the current observation.

    When the buffer is full, each new transition replaces the oldest.
    """

    observation: Array  # [rows, *observation]
    action: Array  # [rows, action]
    reward: Array  # [rows]
    continues: Array  # [rows]
    last: Array  # [rows] bool
    start: Array  # [capacity], the row of each transition
    head: Array  # []
    size: Array  # [], transitions added so far, including replaced ones

    @classmethod
    def empty(cls, capacity: int, like: Dataset) -> Self:
        """Return an empty buffer for `capacity` transitions like those of a dataset.

        It has two rows for each transition, since an episode of one step takes two rows.
        """
        rows = 2 * capacity + 1
        return cls(
            observation=jnp.zeros((rows, *like.spec.observation_shape), like.observation.dtype),  # stacked frames
            action=jnp.zeros((rows, like.action.shape[1])),
            reward=jnp.zeros(rows),
            continues=jnp.zeros(rows),
            last=jnp.zeros(rows, bool),
            start=jnp.zeros(capacity, jnp.int32),
            head=jnp.zeros((), jnp.int32),
            size=jnp.zeros((), jnp.int32),
        )

    @property
    def held(self) -> Array:
        """The number of transitions that `take` can return."""
        return jnp.minimum(self.size, len(self.start))

    def after(self, row: Array) -> Array:
        """Return the row after a row; the first row follows the last."""
        return (row + 1) % len(self.last)

    @property
    def present(self) -> Array:
        """The observation to act on."""
        return self.observation[self.head]

    def begin(self, observation: ArrayLike, when: ArrayLike = True) -> Self:
        """Start an episode; end the previous episode at its current row, or overwrite it if it has no step."""
        newest = self.start[(self.size - 1) % len(self.start)]
        reached = (self.size > 0) & (self.after(newest) == self.head)  # whether `add`, not `begin`, moved `head` here
        head = jnp.where(reached & when, self.after(self.head), self.head)
        last = put(put(self.last, self.head, reached, when), head, False, when)
        return eqx.tree_at(
            lambda experience: (experience.observation, experience.last, experience.head),
            self,
            (put(self.observation, head, observation, when), last, head),
        )

    def add(
        self,
        action: ArrayLike,
        reward: ArrayLike,
        continues: ArrayLike,
        next_observation: ArrayLike,
        when: ArrayLike = True,
    ) -> "Experience":
        """Add one step from the current observation."""
        row, next_row = self.head, self.after(self.head)
        return Experience(
            observation=put(self.observation, next_row, next_observation, when),
            action=put(self.action, row, action, when),
            reward=put(self.reward, row, reward, when),
            continues=put(self.continues, row, continues, when),
            last=put(self.last, next_row, False, when),
            start=put(self.start, self.size % len(self.start), row, when),
            head=jnp.where(when, next_row, row),
            size=self.size + when,
        )

    def take(self, index: Array) -> Transition:
        """Return the transitions at these indices; the action at the current observation is not known yet."""
        row = self.start[index]
        next_row = self.after(row)
        return Transition(
            observation=self.observation[row],
            action=self.action[row],
            reward=self.reward[row],
            continues=self.continues[row],
            next_observation=self.observation[next_row],
            next_action=self.action[next_row],
            next_action_known=1.0 - (self.last[next_row] | (next_row == self.head)),
        )


def put(array: Array, row: Array, value: ArrayLike, when: ArrayLike) -> Array:
    """Set one row if `when` is true.

    If `when` is false, the index is past the end and jax drops the write, so that the array is updated in place.
    """
    return array.at[jnp.where(when, row, len(array))].set(value, mode="drop")


class Replay(eqx.Module):
    """Offline data and experience: batches are uniform over all transitions, or half from each (`balanced`)."""

    offline: Dataset
    experience: Experience
    balanced: bool = eqx.field(static=True)

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Return offline and online transitions; crop their images with the offline data's probability."""
        if self.offline.crop_probability > 0:
            key, crop_key = jax.random.split(key)
            return random_crop(crop_key, self.draw(key, batch_size), self.offline.crop_probability)
        return self.draw(key, batch_size)

    def draw(self, key: Array, batch_size: int) -> Transition:
        """Return offline and online transitions without cropping."""
        if not self.balanced:
            index = jax.random.randint(key, (batch_size,), 0, self.offline.size + self.experience.held)
            from_experience = index >= self.offline.size
            index = jnp.where(from_experience, index - self.offline.size, index)
        else:
            offline_key, experience_key = jax.random.split(key)
            from_experience = (jnp.arange(batch_size) >= batch_size // 2) & (self.experience.size > 0)
            index = jnp.where(
                from_experience,
                jax.random.randint(experience_key, (batch_size,), 0, jnp.maximum(self.experience.held, 1)),
                jax.random.randint(offline_key, (batch_size,), 0, self.offline.size),
            )

        def choose(online: Array, offline: Array) -> Array:
            return jnp.where(from_experience.reshape(-1, *[1] * (online.ndim - 1)), online, offline)

        online = self.experience.take(jnp.where(from_experience, index, 0))
        return jax.tree.map(choose, online, self.offline.take(jnp.where(from_experience, 0, index)))
