"""Write a dataset from Python, episode by episode, as they are recorded."""

import dataclasses
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from drol.data.actions import ActionBox
from drol.data.files.episodes import Assembler
from drol.data.files.options import Reading
from drol.data.store.importing import describe_actions
from drol.data.store.writer import DatasetWriter
from drol.errors import InputError

FIELDS = ("observation", "action", "reward", "terminal", "episode", "next_observation")


class EpisodeWriter:
    """A dataset that grows by episodes and appears under its name when the block ends well.

    >>> with EpisodeWriter("my-robot") as writer:                      # doctest: +SKIP
    ...     writer.add(observation, action, reward, terminal=True)     # one more observation than actions
    """

    def __init__(
        self,
        name: str,
        root: Path | str | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        drop_nonfinite: bool = False,
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
        self.box = box
        self.writer = DatasetWriter(name, Path(root) if root else None, validation, seed, replace)
        self.assembler = Assembler({name: name for name in FIELDS}, Reading(drop_nonfinite=drop_nonfinite, box=box))
        self.episodes = 0

    def __enter__(self) -> Self:
        self.writer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.publish()
        finally:
            self.writer.__exit__(kind, *error)

    def add(self, observation: ArrayLike, action: ArrayLike, reward: ArrayLike, terminal: bool) -> None:
        """One episode: observation [T + 1, ...], action [T, size], reward [T].

        `terminal`: whether the task ended with it; False where a time limit or a person cut it off.
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

    def publish(self) -> None:
        self.writer.append(self.assembler.finish())
        self.writer.publish(
            {
                **describe_actions(self.box, self.assembler.shapes["action"][0]),
                "ends": self.assembler.ends,
                "fields": self.assembler.names,
                "counts": dataclasses.asdict(self.assembler.counts),
                "sources": [],
            }
        )
