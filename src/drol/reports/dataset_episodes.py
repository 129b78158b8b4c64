"""Episodes of a dataset for people to look at: some of them, whole, and what is strange about each."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from drol.data.actions import ACTION_LIMIT
from drol.data.dimensions import named_or_numbered
from drol.data.trajectories import LARGEST, Trajectories, spread, trajectories_of
from drol.tasks.base import Task

MOST_TRANSITIONS = 100_000  # whose observations are looked at
STRANGEST = 10
STRANGE = 4.0  # robust deviations from the middle that are worth a word


@dataclass(frozen=True)
class Looked:
    """What is looked at of a dataset.

    Attributes:
        task: The task.
        trajectories: Of the data in memory: all of it, or the beginning of data on disk.
        chosen: The numbers of the trajectories whose observations are looked at, in order.
        observation: Their rows [rows, ...] end to end; a trajectory of T transitions has T + 1.
        action: Of each row, [rows, action]; of last rows it means nothing.
        last: Which rows end a trajectory.
    """

    task: Task
    trajectories: Trajectories
    chosen: np.ndarray
    observation: np.ndarray
    action: np.ndarray
    last: np.ndarray

    @property
    def names(self) -> dict[str, list[str]]:
        """What the numbers of observations and actions are called, for people."""
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
class Strange:
    """An episode that is unlike the others."""

    episode: int
    length: int
    total: float
    score: float  # robust deviations from the middle, in what is strangest about it
    why: str


def look_at(task: Task) -> Looked:
    """Return what is looked at of a task's data: evenly spread trajectories, as many as fit."""
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
    return Looked(task, trajectories, chosen, *(np.concatenate(each) for each in (rows, actions, last)))


def find_strange(looked: Looked) -> list[Strange]:
    """Return the episodes that are least like the others, the strangest first, each with its strangest trait."""
    traits = measure(looked)
    if len(looked.chosen) < 3:
        return []
    deviations = {name: robust_deviation(values) for name, (values, _) in traits.items()}
    stacked = np.stack(list(deviations.values()))  # [traits, episodes]
    score, worst = np.abs(stacked).max(0), np.abs(stacked).argmax(0)
    found = []
    for place in np.argsort(-score)[:STRANGEST]:
        if score[place] < STRANGE:
            break
        name = list(traits)[worst[place]]
        values, details = traits[name]
        number = int(looked.chosen[place])
        side = "above" if deviations[name][place] > 0 else "below"
        detail = details[place] if details else ""
        found.append(
            Strange(
                episode=number,
                length=int(looked.trajectories.length[number]),
                total=float(looked.trajectories.returns()[number]),
                score=float(score[place]),
                why=f"its {name} is {values[place]:.4g}{detail}, far {side} the middle of {np.median(values):.4g}",
            )
        )
    return found


def measure(looked: Looked) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return the traits of each episode that is looked at, by name, and where in the episode each was found."""
    slices = [looked.rows_of(place) for place in range(len(looked.chosen))]
    actions = [looked.action[each][:-1] for each in slices]
    traits: dict[str, tuple[np.ndarray, list[str]]] = {
        "return": (looked.trajectories.returns()[looked.chosen], []),
        "length": (looked.trajectories.length[looked.chosen].astype(float), []),
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
    if looked.has_images:
        return traits
    values, names = looked.observation.astype(np.float64), looked.names["observation"]
    middle, scale = np.median(values, 0), values.std(0)
    scale = np.where(scale > 0, scale, 1)
    jumps, far, jump_words, far_words = [], [], [], []
    for each in slices:
        change = np.abs(np.diff(values[each], axis=0)) / scale
        step, number = np.unravel_index(change.argmax(), change.shape)
        jumps.append(change.max())
        jump_words.append(f" deviations ({names[number]}, at step {step + 1:,})")
        distance = np.abs(values[each] - middle) / scale
        step, number = np.unravel_index(distance.argmax(), distance.shape)
        far.append(distance.max())
        far_words.append(f" deviations ({names[number]}, at step {step:,})")
    traits["largest jump of an observation"] = (np.asarray(jumps), jump_words)
    traits["largest distance of an observation from its middle"] = (np.asarray(far), far_words)
    return traits


def robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return how many robust deviations values are from their median; equal values are none."""
    offset = values - np.median(values)
    spread_of = 1.4826 * np.median(np.abs(offset))
    floor = max(0.02 * abs(float(np.median(values))), 0.1 * values.std(), 1e-12)
    return offset / max(spread_of, floor)
