"""The 18 D4RL tasks of the paper: their published files, environments on current MuJoCo, and normalised scores."""

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.dataset import Dataset
from drol.data.hdf5 import read_hdf5
from drol.errors import InputError
from drol.tasks.base import Episode, Maze, Task
from drol.tasks.d4rl_environments import GOAL_CELLS, GOAL_RADIUS, MAPS, UNIT, make_adroit, make_antmaze

SERVER = "http://rail.eecs.berkeley.edu/datasets/offline_rl"
ANTMAZE_FILES = {  # task: maze, whether starts and goals vary
    "antmaze-umaze-v2": "u-maze_noisy_multistart_False_multigoal_False",
    "antmaze-umaze-diverse-v2": "u-maze_noisy_multistart_True_multigoal_True",
    "antmaze-medium-play-v2": "big-maze_noisy_multistart_True_multigoal_False",
    "antmaze-medium-diverse-v2": "big-maze_noisy_multistart_True_multigoal_True",
    "antmaze-large-play-v2": "hardest-maze_noisy_multistart_True_multigoal_False",
    "antmaze-large-diverse-v2": "hardest-maze_noisy_multistart_True_multigoal_True",
}
ADROIT_FILES = [
    f"{hand_task}-{data}-v1"
    for hand_task in ("pen", "door", "hammer", "relocate")
    for data in ("human", "cloned", "expert")
]
DATASET_URLS = {
    **{task: f"{SERVER}/ant_maze_v2/Ant_maze_{file}_sparse_fixed.hdf5" for task, file in ANTMAZE_FILES.items()},
    **{task: f"{SERVER}/hand_dapg_v1/{task}.hdf5" for task in ADROIT_FILES},
}
REFERENCE_RETURNS = {  # of a random policy and of the expert; they are 0 and 100 on the normalised scale
    "antmaze": (0.0, 1.0),
    "pen": (96.262799, 3076.8331017826877),
    "door": (-56.512833, 2880.5693087298737),
    "hammer": (-274.856578, 12794.134825156867),
    "relocate": (-6.425911, 4233.877797728884),
}


def task_names() -> list[str]:
    return list(DATASET_URLS)


def load(name: str, dataset_path: Path | None = None) -> Task:
    kind, variant, *_ = name.split("-")
    path = dataset_path or find_dataset(name)
    antmaze = kind == "antmaze"
    make: Callable[[], Any] = (
        functools.partial(make_antmaze, variant) if antmaze else functools.partial(make_adroit, kind)
    )
    environment = make()
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
        maze=draw_maze(variant) if antmaze else None,
    )


def dataset_folder() -> Path:
    """Where D4RL keeps its files."""
    return Path(os.environ.get("D4RL_DATASET_DIR") or "~/.d4rl/datasets").expanduser()


def find_dataset(name: str) -> Path:
    path = dataset_folder() / DATASET_URLS[name].rsplit("/", 1)[1]
    if not path.is_file():
        raise InputError(
            f"the dataset {path.name} of {name} is not in {path.parent}; put D4RL's file there or name it with --dataset"
        )
    return path


def read_dataset(path: Path, antmaze: bool) -> Dataset:
    """The transitions of a D4RL file as the FQL family prepares them.

    The next observation of a row is the row after it; a row with a timeout, and the last of the file, are no
    transition. Antmaze pays one less: -1 before the goal and 0 there. Its walks go on after the goal was reached,
    where D4RL has put a terminal; a terminal of the hand ends the trajectory too.
    """
    rows = read_hdf5(path, ("observations", "actions", "rewards", "terminals", "timeouts"))
    for name in ("rewards", "terminals", "timeouts"):
        if rows[name].ndim == 2 and rows[name].shape[1] == 1:
            rows[name] = rows[name][:, 0]
    if len({array.shape[:1] for array in rows.values()}) != 1 or rows["timeouts"].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in rows.items())
        raise InputError(f"dataset file {path} has arrays of different lengths ({shapes}); they must be equal")
    rewards = rows["rewards"].astype(np.float32, copy=False)
    last = rows["timeouts"].astype(bool)
    if len(last) < 2:
        raise InputError(f"dataset file {path} has {len(last)} rows; a transition needs two")
    last[-1] = True
    arrays = {
        "observation": rows["observations"],
        "action": np.clip(rows["actions"], -1, 1, out=rows["actions"]),
        "reward": rewards - 1 if antmaze else rewards,
        "continues": 1 - rows["terminals"].astype(np.float32),
        "last": last,
    }
    if not antmaze:
        arrays = end_at_terminals(arrays)
    return Dataset.from_rows(**arrays)


def end_at_terminals(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Insert a last row after each transition where the task ended; its observation is that of the row that follows."""
    ends = np.flatnonzero((arrays["continues"][:-1] == 0) & ~arrays["last"][:-1] & ~arrays["last"][1:])
    if not len(ends):
        return arrays
    source = np.insert(np.arange(len(arrays["last"])), ends + 1, ends + 1)
    arrays = {name: array[source] for name, array in arrays.items()}
    arrays["last"][ends + 1 + np.arange(len(ends))] = True
    return arrays


def normalised_score(random_return: float, expert_return: float, episodes: Sequence[Episode]) -> float:
    """Mean of 100 (return - random) / (expert - random); an episode whose environment broke counts 0."""
    scores = [
        0.0 if episode.failure else 100 * (episode.total_reward - random_return) / (expert_return - random_return)
        for episode in episodes
    ]
    return sum(scores) / len(scores)


def draw_maze(maze: str) -> Maze:
    """The map, with a disc that holds all that can be a goal: a square of 1.5 beyond the centre of the goal's cell."""
    row, column = GOAL_CELLS[maze]
    return Maze(
        walls=np.asarray([[character == "#" for character in line] for line in MAPS[maze]]),
        unit=UNIT,
        offset=(UNIT, UNIT),
        start=(0.0, 0.0),
        goal=(UNIT * (column - 1) + 0.75, UNIT * (row - 1) + 0.75),
        goal_radius=GOAL_RADIUS + 0.75 * 2**0.5,
    )
