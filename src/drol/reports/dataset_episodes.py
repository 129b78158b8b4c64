"""Select episodes of a dataset for its page, and find outliers among them."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from drol.data.actions import ACTION_LIMIT
from drol.data.dimensions import named_or_numbered
from drol.data.trajectories import LARGEST, Trajectories, spread, trajectories_of
from drol.tasks.base import Task

MOST_TRANSITIONS = 100_000  # most transitions whose observations are read
OUTLYINGST = 10
OUTLYING = 4.0  # robust standard deviations from the median that make an outlier


@dataclass(frozen=True)
class DatasetSample:
    """The episodes of a dataset that its page shows.

    Attributes:
        task: The task.
        trajectories: The trajectories in memory: all of them, or the first ones of data on disk.
        chosen: The numbers of the selected trajectories, in order.
        observation: Their concatenated rows [rows, ...]; a trajectory of T transitions has T + 1 rows.
        action: The action of each row [rows, action]; undefined in the last row of a trajectory.
        last: Whether each row is the last of its trajectory.
    """

    task: Task
    trajectories: Trajectories
    chosen: np.ndarray
    observation: np.ndarray
    action: np.ndarray
    last: np.ndarray

    @property
    def names(self) -> dict[str, list[str]]:
        """The displayed names of the numbers of observations and actions."""
        task, spec = self.task, self.task.train.spec
        size = spec.observation_shape[0] if len(spec.observation_shape) == 1 else 0
        return {
            "observation": named_or_numbered(task.observation_dimensions, "observation", size),
            "action": named_or_numbered(task.action_dimensions, "action", spec.action_size),
        }

    @property
    def has_images(self) -> bool:
        return self.observation.ndim != 2

    def rows_of(self, place: int) -> slice:
        """Return the rows of the trajectory at a place in `chosen`."""
        ends = np.flatnonzero(self.last)
        return slice(0 if place == 0 else int(ends[place - 1]) + 1, int(ends[place]) + 1)


@dataclass(frozen=True)
class Outlier:
    """An episode that is an outlier."""

    episode: int
    length: int
    total: float
    score: float  # robust standard deviations from the median, in its most unusual trait
    why: str


def take_sample(task: Task) -> DatasetSample:
    """Select evenly spread trajectories of a task's data, as many as fit."""
    data = task.train.leading(LARGEST)
    trajectories = trajectories_of(data)
    images = len(task.train.spec.observation_shape) > 1
    budget = 600 if images else MOST_TRANSITIONS
    fitting = max(1, int(budget / max(1.0, float(trajectories.length.mean()))))
    chosen = spread(len(trajectories.first), fitting)
    rows, actions, last = [], [], []
    for number in chosen:
        index = jnp.arange(int(trajectories.length[number])) + int(trajectories.first[number])
        taken = data.take(index)
        observed, after = np.asarray(taken.observation), np.asarray(taken.next_observation[-1:])
        action = np.asarray(taken.action)
        rows.append(np.concatenate((observed, after)))
        actions.append(np.concatenate((action, action[-1:])))
        last.append(np.arange(len(observed) + 1) == len(observed))
    return DatasetSample(task, trajectories, chosen, *(np.concatenate(each) for each in (rows, actions, last)))


def find_outliers(sample: DatasetSample) -> list[Outlier]:
    """Return the outliers, the most unusual first, each with its most unusual trait."""
    traits = measure(sample)
    if len(sample.chosen) < 3:
        return []
    deviations = {name: robust_deviation(values) for name, (values, _) in traits.items()}
    stacked = np.stack(list(deviations.values()))  # [traits, episodes]
    score, worst = np.abs(stacked).max(0), np.abs(stacked).argmax(0)
    found = []
    for place in np.argsort(-score)[:OUTLYINGST]:
        if score[place] < OUTLYING:
            break
        name = list(traits)[worst[place]]
        values, details = traits[name]
        number = int(sample.chosen[place])
        side = "above" if deviations[name][place] > 0 else "below"
        detail = details[place] if details else ""
        found.append(
            Outlier(
                episode=number,
                length=int(sample.trajectories.length[number]),
                total=float(sample.trajectories.returns()[number]),
                score=float(score[place]),
                why=f"its {name} is {values[place]:.4g}{detail}, far {side} the median of {np.median(values):.4g}",
            )
        )
    return found


def measure(sample: DatasetSample) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return the traits of each selected episode by name, and where in the episode each was found."""
    slices = [sample.rows_of(place) for place in range(len(sample.chosen))]
    actions = [sample.action[each][:-1] for each in slices]
    traits: dict[str, tuple[np.ndarray, list[str]]] = {
        "return": (sample.trajectories.returns()[sample.chosen], []),
        "length": (sample.trajectories.length[sample.chosen].astype(float), []),
        "mean size of the actions": (np.asarray([np.abs(each).mean() for each in actions]), []),
        "share of actions at the limit": (
            np.asarray([(np.abs(each) >= ACTION_LIMIT * (1 - 1e-6)).mean() for each in actions]),
            [],
        ),
        "mean change of the actions": (
            np.asarray([np.abs(np.diff(each, axis=0)).mean() if len(each) > 1 else 0.0 for each in actions]),
            [],
        ),
    }
    if sample.has_images:
        return traits
    values, names = sample.observation.astype(np.float64), sample.names["observation"]
    middle, scale = np.median(values, 0), values.std(0)
    scale = np.where(scale > 0, scale, 1)
    jumps, far, jump_words, far_words = [], [], [], []
    for each in slices:
        change = np.abs(np.diff(values[each], axis=0)) / scale
        step, number = np.unravel_index(change.argmax(), change.shape)
        jumps.append(change.max())
        jump_words.append(f" standard deviations ({names[number]}, at step {step + 1:,})")
        distance = np.abs(values[each] - middle) / scale
        step, number = np.unravel_index(distance.argmax(), distance.shape)
        far.append(distance.max())
        far_words.append(f" standard deviations ({names[number]}, at step {step:,})")
    traits["largest jump of an observation"] = (np.asarray(jumps), jump_words)
    traits["largest distance of an observation from its median"] = (np.asarray(far), far_words)
    return traits


def robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return the distance of values from their median in robust standard deviations; 0 for equal values."""
    offset = values - np.median(values)
    spread_of = 1.4826 * np.median(np.abs(offset))
    floor = max(0.02 * abs(float(np.median(values))), 0.1 * values.std(), 1e-12)
    return offset / max(spread_of, floor)
