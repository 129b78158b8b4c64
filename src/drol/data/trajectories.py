"""The trajectories of a dataset: where each begins, how long it is, what it earned."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.data.dataset import Dataset
from drol.data.on_disk import MappedDataset
from drol.errors import InputError
from drol.tasks.base import Task

LARGEST = 500_000  # rows of a dataset on disk that are looked at


@dataclass(frozen=True)
class Trajectories:
    """The transitions of a dataset in order, cut into trajectories; all but observations, which may not fit twice."""

    first: np.ndarray  # [trajectories], the number of each first transition
    length: np.ndarray  # [trajectories]
    action: np.ndarray  # [N, action]
    reward: np.ndarray  # [N]
    continues: np.ndarray  # [N]

    @property
    def number(self) -> np.ndarray:
        """The trajectory [N] of each transition."""
        return np.repeat(np.arange(len(self.first)), self.length)

    def returns(self) -> np.ndarray:
        """The sum of rewards [trajectories] of each."""
        return np.add.reduceat(self.reward.astype(np.float64), self.first)

    def discounted_returns(self, discount: float) -> tuple[np.ndarray, np.ndarray]:
        """`G_t = r_t + gamma m_t G_t+1` [N], and the weight [N] in it of what follows the last transition.

        The weight is 0 where the task ended; elsewhere it says how much of the return is not in the data.
        """
        total, unseen = np.empty(len(self.reward)), np.empty(len(self.reward))
        last = np.zeros(len(self.reward), bool)
        last[self.first + self.length - 1] = True
        following, weight = 0.0, 1.0
        for index in range(len(self.reward) - 1, -1, -1):
            if last[index]:
                following, weight = 0.0, 1.0
            factor = discount * self.continues[index]
            following, weight = self.reward[index] + factor * following, factor * weight
            total[index], unseen[index] = following, weight
        return total, unseen


@jax.jit
def without_observations(dataset: Dataset) -> tuple:
    """Compiled, so that the observations that `take` gathers are never made."""
    taken = dataset.take(jnp.arange(dataset.size))
    return taken.action, taken.reward, taken.continues, taken.next_action_known


def trajectories_of(dataset: Dataset) -> Trajectories:
    action, reward, continues, known = (np.asarray(array) for array in without_observations(dataset))
    ends = np.flatnonzero(known == 0)
    first = np.append(0, ends[:-1] + 1)
    return Trajectories(first, ends + 1 - first, action, reward, continues)


@dataclass(frozen=True)
class Part:
    """Whole trajectories of a dataset that follow one another."""

    dataset: Dataset
    trajectories: Trajectories  # of the whole dataset
    begin: int  # the first trajectory of the part
    end: int  # the first that is no longer of it

    @property
    def transitions(self) -> tuple[int, int]:
        """The first transition, and the first that is no longer of it."""
        bounds = np.append(self.trajectories.first, self.dataset.size)
        return int(bounds[self.begin]), int(bounds[self.end])

    def spread(self, count: int) -> np.ndarray:
        """The numbers of at most `count` transitions, evenly spread."""
        begin, end = self.transitions
        return begin + spread(end - begin, count)


def spread(size: int, count: int) -> np.ndarray:
    """At most `count` different numbers below `size`, evenly spread and in order."""
    return np.arange(size) if size <= count else np.linspace(0, size - 1, count).round().astype(int)


def split(task: Task) -> tuple[Part, Part, bool]:
    """What to compare with, what to test on, and whether no update saw the latter.

    Without validation data the last tenth of the trajectories is tested against the others; a policy that was
    trained on all of them has then seen what it is tested on.
    """
    task = dataclasses.replace(task, train=leading(task.train), validation=leading(task.validation))
    train = trajectories_of(task.train)
    count = len(train.first)
    if task.validation is not None:
        validation = trajectories_of(task.validation)
        whole = Part(task.train, train, 0, count)
        return whole, Part(task.validation, validation, 0, len(validation.first)), True
    if count < 2:
        raise InputError(
            f"the data of {task.name} is one trajectory without validation data; offline evaluation needs two"
        )
    cut = count - max(1, count // 10)
    return Part(task.train, train, 0, cut), Part(task.train, train, cut, count), False


def leading(dataset: Any) -> Any:
    """Of data that stays on disk the first trajectories, which fit in memory."""
    return dataset.first(LARGEST) if isinstance(dataset, MappedDataset) else dataset
