"""Transitions for updates: what every dataset offers, and the dataset whose arrays are on the device."""

from typing import Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from drol.data.files.episodes import assemble
from drol.data.files.options import ReadingOptions
from drol.data.images import check_images, check_standardisable, is_image, random_crop, rows_before, stack
from drol.data.moments import observation_moments
from drol.data.rows import ROW_ARRAYS, Arrays, Fingerprint, check_rows, finish_rows
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.types import Spec, Transition


class Transitions(Protocol):
    """N transitions that updates draw batches from, in memory (`Dataset`) or on disk (`OnDiskDataset`)."""

    @property
    def size(self) -> int:
        """N."""
        ...

    @property
    def spec(self) -> Spec:
        """Shapes of an observation and of an action, as batches have them."""
        ...

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        ...

    @property
    def on_device(self) -> "Dataset | None":
        """The arrays, where compiled code can index them; None if batches must be streamed."""
        ...

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Return transitions drawn uniformly, with replacement."""
        ...

    def take(self, index: Array) -> Transition:
        """Return the transitions with these numbers."""
        ...

    def standardised(self, standardisation: Standardisation) -> "Transitions":
        """Return the same transitions with standardised observations; images are refused."""
        ...

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation of the observations; images are refused."""
        ...

    def fingerprint(self) -> str:
        """Return a hash that equal data share, however they are stored."""
        ...

    def leading(self, rows: int) -> "Dataset":
        """Return the first whole trajectories, of at most so many rows together but at least one, in memory."""
        ...

    def some(self, count: int) -> "Dataset":
        """Return so many transitions from all over the data, in memory; data in memory return all."""
        ...


class Dataset(eqx.Module):
    """N transitions in memory, laid out as rows of trajectories: the next observation of a row is the row after it.

    A trajectory of T transitions is T + 1 rows; its last row only holds the final observation. So each observation is
    stored once. Images stay bytes, and an observation of several frames is put together when it is drawn.
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
    ) -> Self:
        """Return a dataset of trajectories laid end to end, T + 1 rows for T transitions.

        Args:
            observation: Vectors [rows, size], or images of bytes [rows, height, width, channels].
            action: Actions in [-1, 1], [rows, action size].
            reward: Rewards [rows].
            continues: 0 where the task ended with the transition, else 1, [rows].
            last: Whether a row is the last of its trajectory, [rows]; there all but the observation is ignored.
            frame_stack: Images that make one observation.
            crop_probability: The probability with which `sample` crops the images of a batch.
        """
        rows = {"observation": observation, "action": action, "reward": reward, "continues": continues, "last": last}
        return cls._finish(rows, frame_stack, crop_probability, overwrite=False)

    @classmethod
    def take_over(
        cls,
        observation: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        continues: np.ndarray,
        last: np.ndarray,
        frame_stack: int = 1,
        crop_probability: float = 0.0,
    ) -> Self:
        """Return the dataset that `from_rows` gives, without a second copy of arrays that nobody else needs.

        The actions are finished in place, so the caller must not use them afterwards.
        """
        rows = {"observation": observation, "action": action, "reward": reward, "continues": continues, "last": last}
        return cls._finish(rows, frame_stack, crop_probability, overwrite=True)

    @classmethod
    def _finish(cls, rows: Arrays, frame_stack: int, crop_probability: float, overwrite: bool) -> Self:
        check_images(rows["observation"], frame_stack, crop_probability)
        rows["last"] = np.asarray(rows["last"], bool)
        check_rows(rows)
        rows = finish_rows(rows, overwrite)
        # With the type named, jax on a CPU takes over an aligned array without a copy.
        return cls(
            observation=jnp.asarray(rows["observation"], jnp.uint8 if is_image(rows["observation"]) else jnp.float32),
            action=jnp.asarray(rows["action"], jnp.float32),
            reward=jnp.asarray(rows["reward"], jnp.float32),
            continues=jnp.asarray(rows["continues"], jnp.float32),
            last=jnp.asarray(rows["last"]),
            start=jnp.asarray(np.flatnonzero(~rows["last"]), jnp.int32),
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
        """Return a dataset of flat arrays that have a row for each step, in order.

        Ends of episodes are understood as `drol data import` understands them: after a true end nothing follows; a cut
        (a time limit, the end of the data) only stops the recording. Without `next_observation` the step at a cut is
        no transition of its own, since what followed it is not known.

        Args:
            observation: What was seen before each action: [steps, size], or images of bytes
                [steps, height, width, channels].
            action: What was done, in [-1, 1]: [steps, action size].
            reward: What each action earned: [steps].
            terminal: True at steps with which the task ended: [steps].
            timeout: True at steps after which a time limit cut the episode: [steps].
            episode: The number of the episode of each step: [steps].
            next_observation: What was seen after each action, like `observation`.
            ends: Where the marks leave it open: "terminal" or "timeout" if all ends are alike, or "flags" if terminals
                are true ends and all other ends are cuts.

        Returns:
            The transitions, checked and on the device.

        Example:
            Two episodes; the first ended with its second step, the other was cut after three.

            >>> import drol
            >>> import numpy as np
            >>> dataset = drol.Dataset.from_arrays(
            ...     observation=np.arange(5.0)[:, None],
            ...     action=np.zeros((5, 2)),
            ...     reward=[0, 1, 0, 0, 0],
            ...     terminal=[False, True, False, False, False],
            ...     timeout=[False, False, False, False, True],
            ... )
            >>> dataset.size
            4
            >>> dataset.spec
            Spec(observation_shape=(1,), action_size=2)
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
        rows, _ = assemble(arrays, ReadingOptions(ends=ends))
        return cls.take_over(rows["observation"], rows["action"], rows["reward"], rows["continues"], rows["last"])

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

    @property
    def on_device(self) -> "Dataset | None":
        return self

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Return transitions drawn uniformly, with replacement; their images are cropped with `crop_probability`."""
        if self.crop_probability == 0:
            return self.take(jax.random.randint(key, (batch_size,), 0, self.size))
        index_key, crop_key = jax.random.split(key)
        batch = self.take(jax.random.randint(index_key, (batch_size,), 0, self.size))
        return random_crop(crop_key, batch, self.crop_probability)

    def take(self, index: Array) -> Transition:
        """Return the transitions with these numbers; their images are not cropped."""
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

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation of all rows of observations; images are refused."""
        check_standardisable(self.observation)
        return observation_moments(self.observation)

    def standardised(self, standardisation: Standardisation) -> Self:
        """Return the same transitions with standardised observations; images are refused."""
        check_standardisable(self.observation)
        return eqx.tree_at(lambda data: data.observation, self, standardisation(self.observation))

    def fingerprint(self) -> str:
        """Return a hash of every value and of how images are drawn."""
        fingerprint = Fingerprint()
        for name in ROW_ARRAYS:
            array = np.ascontiguousarray(getattr(self, name))
            fingerprint.begin_array(name, array.dtype, array.shape)
            fingerprint.add_bytes(array.reshape(-1).view(np.uint8).data)  # not a copy: images may fill half of memory
        fingerprint.add_image_options(self.frame_stack, self.crop_probability)
        return fingerprint.hexdigest()

    def leading(self, rows: int) -> "Dataset":  # noqa: ARG002
        """Return the dataset itself: all of it is in memory."""
        return self

    def some(self, count: int) -> "Dataset":  # noqa: ARG002
        """Return the dataset itself: all of it is in memory."""
        return self
