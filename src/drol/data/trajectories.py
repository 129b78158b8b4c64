"""The trajectories of a dataset: the start, length and return of each."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from drol.data.dataset import Dataset

LARGEST = 500_000  # rows of an on-disk dataset to load where complete trajectories are needed


@dataclass(frozen=True)
class Trajectories:
    """The transitions of a dataset in order, without observations, since a copy of them may not fit in memory."""

    first: np.ndarray  # [trajectories], the index of the first transition of each
    length: np.ndarray  # [trajectories]
    action: np.ndarray  # [N, action]
    reward: np.ndarray  # [N]
    continues: np.ndarray  # [N]

    @property
    def number(self) -> np.ndarray:
        """The trajectory number [N] of each transition."""
        return np.repeat(np.arange(len(self.first)), self.length)

    def returns(self) -> np.ndarray:
        """Return the sum of rewards [trajectories] of each trajectory."""
        return np.add.reduceat(self.reward.astype(np.float64), self.first)

    def discounted_returns(self, discount: float) -> tuple[np.ndarray, np.ndarray]:
        """Return `G_t = r_t + gamma m_t G_t+1` [N], and the weight [N] in G_t of the rewards after the trajectory.

        The weight is 0 where the task ended. Elsewhere the data lack the return after the trajectory, and G_t lacks
        this return multiplied by the weight.
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
    """Return action, reward, continues and next_action_known of all transitions.

    The function is compiled, so that the observations in `take` are not computed.
    """
    taken = dataset.take(jnp.arange(dataset.size))
    return taken.action, taken.reward, taken.continues, taken.next_action_known


def trajectories_of(dataset: Dataset) -> Trajectories:
    """Return the trajectories of a dataset."""
    action, reward, continues, known = (np.asarray(array) for array in without_observations(dataset))
    ends = np.flatnonzero(known == 0)
    first = np.append(0, ends[:-1] + 1)
    return Trajectories(first, ends + 1 - first, action, reward, continues)


@dataclass(frozen=True)
class Part:
    """Consecutive complete trajectories of a dataset."""

    dataset: Dataset
    trajectories: Trajectories  # the trajectories of the complete dataset
    begin: int  # the number of the first trajectory of the part
    end: int  # the number of the first trajectory after it

    @property
    def transitions(self) -> tuple[int, int]:
        """The index of the first transition of the part, and of the first transition after it."""
        bounds = np.append(self.trajectories.first, self.dataset.size)
        return int(bounds[self.begin]), int(bounds[self.end])

    def spread(self, count: int) -> np.ndarray:
        """Return the indices of at most `count` transitions, evenly spaced over the part."""
        begin, end = self.transitions
        return begin + spread(end - begin, count)


def spread(size: int, count: int) -> np.ndarray:
    """Return at most `count` different integers below `size`, evenly spaced and in order."""
    return np.arange(size) if size <= count else np.linspace(0, size - 1, count).round().astype(int)
