"""What a task is: data, an environment to test in, and a score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dataset import Dataset


@dataclass(frozen=True)
class Episode:
    """One evaluation episode."""

    seed: int
    total_reward: float
    length: int
    success: bool
    failure: str | None = None  # why the environment broke, if it did
    positions: np.ndarray | None = None  # [length + 1, 2], for tasks with a maze to draw

    def to_dict(self) -> dict[str, Any]:
        """As it is recorded, without the positions."""
        row = {"seed": self.seed, "return": self.total_reward, "length": self.length, "success": self.success}
        return row | ({"failure": self.failure} if self.failure else {})


@dataclass(frozen=True)
class Maze:
    """The map of a maze; the centre of cell (row, column) is at `unit * (column, row) - offset`."""

    walls: np.ndarray  # [rows, columns] bool
    unit: float
    offset: tuple[float, float]
    start: tuple[float, float]
    goal: tuple[float, float]
    goal_radius: float


@dataclass(frozen=True)
class Task:
    """A dataset and, where there is one, the simulator that tells how good a policy is."""

    name: str
    train: Dataset  # or, where it does not fit in memory, a MappedDataset that gives the same batches
    validation: Dataset | None
    make_environment: Callable[[], Any] | None  # a gymnasium environment; None: there is only data
    score: Callable[[Sequence[Episode]], float]
    score_name: str  # what the score is, with its unit
    reward_offset: float = 0.0  # added to the environment's rewards to make those of the data
    action_box: ActionBox | None = None  # that the data's actions lived in, where they were scaled
    maze: Maze | None = None  # the first two numbers of an observation are then a position in it


def success_rate(episodes: Sequence[Episode]) -> float:
    """Successful episodes in percent; one whose environment broke counts as failed."""
    return 100.0 * sum(episode.success for episode in episodes) / len(episodes)
