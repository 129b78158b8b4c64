"""Load D4RL tasks: data prepared as in the FQL family, environments on current MuJoCo, normalised scores."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.tasks.base import Episode, Maze, Task
from drol.tasks.d4rl.environments import GOAL_CELLS, GOAL_RADIUS, MAPS, UNIT, environment_maker
from drol.tasks.d4rl.hdf5_rows import read_rows

REFERENCE_RETURNS = {  # returns of a random policy and of the expert, which score 0 and 100
    "antmaze": (0.0, 1.0),
    "pen": (96.262799, 3076.8331017826877),
    "door": (-56.512833, 2880.5693087298737),
    "hammer": (-274.856578, 12794.134825156867),
    "relocate": (-6.425911, 4233.877797728884),
}

ANTMAZE_REWARD = -1.0  # added to antmaze's rewards
ANTMAZE_MODULES = ("gymnasium", "mujoco", "ogbench", "drol.tasks.d4rl.antmaze")  # imported to make an environment
ADROIT_MODULES = ("gymnasium", "mujoco", "drol.tasks.d4rl.adroit")


def load_d4rl_task(name: str, path: Path) -> Task:
    """Load a task with the data of a file."""
    kind, variant, *_ = name.split("-")
    antmaze = kind == "antmaze"
    make = environment_maker(name)
    environment = make()  # now, so that a missing package raises an error before the file is read
    sizes = environment.observation_space.shape[0], environment.action_space.shape[0]
    environment.close()
    train = read_dataset(path, antmaze)
    if sizes != (train.spec.observation_size, train.spec.action_size):
        raise InputError(
            f"dataset file {path} has observations of {train.spec.observation_size} and actions of "
            f"{train.spec.action_size} numbers; those of {name} have {sizes[0]} and {sizes[1]}"
        )
    return Task(
        name=name,
        train=train,
        validation=None,
        make_environment=make,
        score=functools.partial(normalised_score, *REFERENCE_RETURNS[kind]),
        score_name="success (%)" if antmaze else "normalised score",
        reward_offset=ANTMAZE_REWARD if antmaze else 0.0,
        maze=maze_map(variant) if antmaze else None,
        environment_modules=ANTMAZE_MODULES if antmaze else ADROIT_MODULES,
        shares_process=True,
    )


def read_dataset(path: Path, antmaze: bool) -> Dataset:
    """Read the transitions of a D4RL file, prepared as in the FQL family.

    The next observation of a row is the observation of the next row. Rows with a timeout, and the last row of the file,
    are not transitions. Antmaze's rewards are reduced by 1: -1 before the goal and 0 at the goal. Its trajectories
    continue after a terminal, which D4RL sets where the goal is reached. In the hand tasks, a terminal also ends the
    trajectory.
    """
    rows = read_rows(path)
    last = rows["timeouts"].copy()
    last[-1] = True
    arrays: dict[str, Any] = {
        "observation": rows["observations"],
        "action": np.clip(rows["actions"], -1, 1, out=rows["actions"]),
        "reward": rows["rewards"] + np.float32(ANTMAZE_REWARD if antmaze else 0),
        "continues": 1 - rows["terminals"].astype(np.float32),
        "last": last,
    }
    if not antmaze:
        arrays = end_at_terminals(arrays)
    return Dataset.from_rows(**arrays, overwrite=True)


def end_at_terminals(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Insert a last row after each transition that ended the task; it copies the row that followed the transition."""
    ends = np.flatnonzero((arrays["continues"][:-1] == 0) & ~arrays["last"][:-1] & ~arrays["last"][1:])
    if not len(ends):
        return arrays
    source = np.insert(np.arange(len(arrays["last"])), ends + 1, ends + 1)
    arrays = {name: array[source] for name, array in arrays.items()}
    arrays["last"][ends + 1 + np.arange(len(ends))] = True
    return arrays


def normalised_score(random_return: float, expert_return: float, episodes: Sequence[Episode]) -> float:
    """Return the mean of 100 (return - random) / (expert - random); an episode whose environment failed scores 0."""
    scores = [
        0.0 if episode.failure else 100 * (episode.total_reward - random_return) / (expert_return - random_return)
        for episode in episodes
    ]
    return sum(scores) / len(scores)


def maze_map(maze: str) -> Maze:
    """Return the map of a maze; its goal is a disc around the square of all goals, whose side is 1.5."""
    row, column = GOAL_CELLS[maze]
    return Maze(
        walls=np.asarray([[character == "#" for character in line] for line in MAPS[maze]]),
        unit=UNIT,
        offset=(UNIT, UNIT),
        start=(0.0, 0.0),
        goal=(UNIT * (column - 1) + 0.75, UNIT * (row - 1) + 0.75),
        goal_radius=GOAL_RADIUS + 0.75 * 2**0.5,
    )
