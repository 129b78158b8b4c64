"""The trajectories of a dataset: where each begins, how long it is, what it earned."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from drol.data.dataset import Dataset

LARGEST = 500_000  # rows of data on disk that are read into memory where trajectories are looked at as a whole


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
        """Return the sum of rewards [trajectories] of each trajectory."""
        return np.add.reduceat(self.reward.astype(np.float64), self.first)

    def discounted_returns(self, discount: float) -> tuple[np.ndarray, np.ndarray]:
        """Return `G_t = r_t + gamma m_t G_t+1` [N], and the weight [N] in it of what follows the last transition.

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
    """Return action, reward, continues and next_action_known of all transitions.

    It is compiled, so that the observations that `take` gathers are never made.
    """
    taken = dataset.take(jnp.arange(dataset.size))
    return taken.action, taken.reward, taken.continues, taken.next_action_known


def trajectories_of(dataset: Dataset) -> Trajectories:
    """Return the trajectories that a dataset is made of."""
    action, reward, continues, known = (np.asarray(array) for array in without_observations(dataset))
    ends = np.flatnonzero(known == 0)
    first = np.append(0, ends[:-1] + 1)
    return Trajectories(first, ends + 1 - first, action, reward, continues)


@dataclass(frozen=True)
class Part:
    """Whole trajectories of a dataset that follow one another."""

    dataset: Dataset
    trajectories: Trajectories  # of the whole dataset
    begin: int  # the number of the first trajectory of the part
    end: int  # the number of the first trajectory after it

    @property
    def transitions(self) -> tuple[int, int]:
        """The number of the first transition of the part, and of the first transition after it."""
        bounds = np.append(self.trajectories.first, self.dataset.size)
        return int(bounds[self.begin]), int(bounds[self.end])

    def spread(self, count: int) -> np.ndarray:
        """Return the numbers of at most `count` transitions, evenly spread over the part."""
        begin, end = self.transitions
        return begin + spread(end - begin, count)


def spread(size: int, count: int) -> np.ndarray:
    """Return at most `count` different numbers below `size`, evenly spread and in order."""
    return np.arange(size) if size <= count else np.linspace(0, size - 1, count).round().astype(int)
