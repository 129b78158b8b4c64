"""Write a dataset from Python, episode by episode."""

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions
from drol.data.episodes_to_rows import Assembler
from drol.data.import_options import ReadingOptions
from drol.data.importing.import_files import describe
from drol.data.store.writer import DatasetWriter
from drol.errors import InputError

FIELDS = ("observation", "action", "reward", "terminal", "episode", "next_observation")


class EpisodeWriter:
    """Writes a dataset episode by episode; it is published when the `with` block ends without an exception.

    docs/data.md explains datasets and their format.

    Episodes are written to disk when they are added, so a recording may be larger than memory. After an exception,
    nothing is left on disk.

    Args:
        name: The name of the dataset; `files/NAME` is then the task to train on.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        action_low: The lowest value of each dimension of an action, in the units of the robot.
        action_high: The highest value; without both bounds, actions must lie in [-1, 1].
        drop_nonfinite: Whether to drop steps with NaN or infinity and to cut their episode there.
        observation_dimensions: The names, units and frames of the numbers of an observation, in order.
        action_dimensions: The names, units and frames of the numbers of an action, in order.
        validation: The fraction of episodes to hold out.
        seed: The seed that chooses the held-out episodes.
        replace: Whether to replace an existing dataset of this name.

    Example:
        Twenty episodes of three steps on a robot with a single motor of 12 volts.

        >>> import tempfile
        >>> import drol
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with drol.EpisodeWriter("my-robot", folder, action_low=-12, action_high=12) as writer:
        ...         for _ in range(20):
        ...             observation = np.random.normal(size=(4, 2))  # one more than actions
        ...             action = np.random.uniform(-12, 12, size=(3, 1))
        ...             writer.add(observation, action, reward=[0, 0, 1], terminal=True)
        ...     writer.episodes
        20
    """

    def __init__(
        self,
        name: str,
        root: Path | str | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        drop_nonfinite: bool = False,
        observation_dimensions: Dimensions | None = None,
        action_dimensions: Dimensions | None = None,
        validation: float = 0.1,
        seed: int = 0,
        replace: bool = False,
    ):
        if (action_low is None) != (action_high is None):
            raise InputError("only one of action_low and action_high was given; a box needs both")
        box = None
        if action_low is not None and action_high is not None:
            low, high = (tuple(np.atleast_1d(np.asarray(each, float)).tolist()) for each in (action_low, action_high))
            box = ActionBox(low, high)
        reading = ReadingOptions(drop_nonfinite=drop_nonfinite, box=box)
        self.writer = DatasetWriter(name, Path(root) if root else None, validation, seed, replace)
        self.assembler = Assembler({name: name for name in FIELDS}, reading)
        self.dimensions = {"observation": observation_dimensions, "action": action_dimensions}
        self.episodes = 0

    def __enter__(self) -> Self:
        self.writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.writer.append(self.assembler.finish())
                self.writer.publish(describe(self.assembler, files=[], dimensions=self.dimensions))
        finally:
            self.writer.__exit__(kind, *error)

    def add(self, observation: ArrayLike, action: ArrayLike, reward: ArrayLike, terminal: bool) -> None:
        """Write one episode of T actions.

        Args:
            observation: The observation before each action and after the last: [T + 1, size], or images of bytes
                [T + 1, height, width, channels].
            action: The actions: [T, action size].
            reward: The reward of each action: [T].
            terminal: Whether the task ended with the episode; False if a time limit or a person stopped it.
        """
        where = f"episode {self.episodes}"
        try:
            observations, actions, rewards = np.asarray(observation), np.asarray(action), np.asarray(reward)
        except ValueError as error:
            raise InputError(f"{where}: the steps have different shapes ({error}); all must be alike") from error
        steps = len(actions) if actions.ndim else 0
        for name, array, expected in (("observation", observations, steps + 1), ("reward", rewards, steps)):
            if not array.ndim or len(array) != expected:
                found = len(array) if array.ndim else "no"
                raise InputError(f"{where}: {name} has {found} rows; {steps} actions need {expected}")
        for name, array in (("observation", observations), ("action", actions)):
            dimensions = self.dimensions[name]
            if dimensions is not None and array.shape[1:] != (len(dimensions.names),):
                names = len(dimensions.names)
                raise InputError(
                    f"{where}: {name} has shape {list(array.shape)}; it has {names} names, so each step must have "
                    f"{names} numbers"
                )
        if steps == 0:
            raise InputError(f"{where} has no action; an episode needs at least one")
        flags = np.zeros(steps, bool)
        flags[-1] = terminal
        block = {
            "observation": observations[:-1],
            "action": actions,
            "reward": rewards,
            "terminal": flags,
            "episode": np.full(steps, self.episodes),
            "next_observation": observations[1:],
        }
        self.writer.append(self.assembler.add(block, where))
        self.writer.append(self.assembler.end_file())
        self.episodes += 1
