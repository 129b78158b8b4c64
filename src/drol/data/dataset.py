"""The interface of every dataset (`Transitions`), and the dataset whose arrays are on the device (`Dataset`)."""

from typing import Any, Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from drol.data.episodes_to_rows import assemble
from drol.data.images import check_images, check_standardisable, is_image, random_crop, rows_before, stack
from drol.data.import_options import ReadingOptions
from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.data.trajectory_rows import ROW_ARRAYS, Fingerprint, check_rows, finish_rows
from drol.errors import InputError, naming_arguments
from drol.transition import Spec, Transition


class Transitions(Protocol):
    """N transitions that updates draw batches from, in memory (`Dataset`) or on disk (`OnDiskDataset`)."""

    @property
    def size(self) -> int:
        """The number of transitions, N."""
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
        """The dataset itself if compiled code can index its arrays; None if batches must be streamed."""
        ...

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Return transitions drawn uniformly, with replacement."""
        ...

    def take(self, index: Array) -> Transition:
        """Return the transitions at these indices."""
        ...

    def standardised(self, standardisation: Standardisation) -> "Transitions":
        """Return the same transitions with standardised observations; raise `InputError` for images."""
        ...

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and standard deviation of the observations; raise `InputError` for images."""
        ...

    def fingerprint(self) -> str:
        """Return a hash of the data; it does not depend on how the data are stored."""
        ...

    def leading(self, rows: int) -> "Dataset":
        """Return the leading complete trajectories in memory, up to `rows` rows but at least one trajectory.

        A dataset that is already in memory returns itself.
        """
        ...

    def some(self, count: int) -> "Dataset":
        """Return an in-memory subsample of `count` transitions; a dataset that is already in memory returns itself."""
        ...


class Dataset(eqx.Module):
    """N transitions in memory, laid out as rows of trajectories: the next observation of a row is the row after it.

    A trajectory of T transitions is T + 1 rows; its last row only holds the final observation. So each observation is
    stored once. Images are stored as bytes. The frames of an observation are stacked when it is sampled.
    """

    observation: Array  # [rows, *observation]; for images, a single frame in each row
    action: Array  # [rows, action]; a last row holds the first action of the next trajectory
    reward: Array  # [rows]
    continues: Array  # [rows], 0 where the task ended
    last: Array  # [rows] bool, true on the last row of each trajectory
    start: Array  # [N], the row of each transition
    frame_stack: int = eqx.field(static=True, default=1)  # rows stacked along the last axis of an observation
    crop_probability: float = eqx.field(static=True, default=0.0)  # of cropping the images of a batch in `sample`

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
        overwrite: bool = False,
    ) -> Self:
        """Return a dataset of trajectories laid end to end, T + 1 rows for T transitions.

        Args:
            observation: Vectors [rows, size], or images of bytes [rows, height, width, channels].
            action: Actions in [-1, 1], [rows, action size].
            reward: Rewards [rows].
            continues: 0 where the task ended with the transition, else 1, [rows].
            last: Whether a row is the last of its trajectory, [rows]. Only the observation of a last row is used.
            frame_stack: The number of images in one observation.
            crop_probability: The probability with which `sample` crops the images of a batch.
            overwrite: Whether to use the memory of the arrays instead of copying them; the caller must not use them
                afterwards.
        """
        check_images(observation, frame_stack, crop_probability)
        rows = {"observation": observation, "action": action, "reward": reward, "continues": continues}
        rows["last"] = np.asarray(last, bool)
        check_rows(rows)
        rows = finish_rows(rows, overwrite)
        # With an explicit dtype, jax on a CPU uses an aligned array without copying it.
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
        """Return a dataset made from flat arrays with one row for each step, in order.

        The ends of episodes are interpreted as by `drol data import`: a true end ends the task; a cut (a time limit or
        the end of the data) only ends the recording. Without `next_observation`, the step at a cut is not a
        transition, since its next observation is unknown.

        Args:
            observation: The observation before each action: [steps, size], or images of bytes
                [steps, height, width, channels].
            action: The actions, in [-1, 1]: [steps, action size].
            reward: The reward of each action: [steps].
            terminal: True at the steps that ended the task: [steps].
            timeout: True at steps after which a time limit cut the episode: [steps].
            episode: The number of the episode of each step: [steps].
            next_observation: The observation after each action, like `observation`.
            ends: The type of the ends, if the flags leave it ambiguous: "terminal" or "timeout" if all ends are of
                that type, or "flags" if terminals are true ends and all other ends are cuts.

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
        if terminal is None and timeout is None and episode is None:
            raise InputError("nothing says where episodes end; pass terminal, timeout or episode")
        with naming_arguments():
            rows: dict[str, Any] = assemble(arrays, ReadingOptions(ends=ends))[0]
        return cls.from_rows(**rows, overwrite=True)

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
        """Return transitions drawn uniformly, with replacement; crop their images with `crop_probability`."""
        if self.crop_probability == 0:
            return self.take(jax.random.randint(key, (batch_size,), 0, self.size))
        index_key, crop_key = jax.random.split(key)
        batch = self.take(jax.random.randint(index_key, (batch_size,), 0, self.size))
        return random_crop(crop_key, batch, self.crop_probability)

    def take(self, index: Array) -> Transition:
        """Return the transitions at these indices, without cropping their images."""
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
        """Return the mean and standard deviation of all rows of observations; raise `InputError` for images."""
        check_standardisable(self.observation)
        return observation_moments(self.observation)

    def standardised(self, standardisation: Standardisation) -> Self:
        """Return the same transitions with standardised observations; raise `InputError` for images."""
        check_standardisable(self.observation)
        return eqx.tree_at(lambda data: data.observation, self, standardisation(self.observation))

    def fingerprint(self) -> str:
        """Return a hash of every value, of the frame stack and of the crop probability."""
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
