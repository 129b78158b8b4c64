"""OGBench single tasks in mazes, by their official names.

Rewards follow OGBench: -1 while the position of the current state is outside the goal, 0 inside, where the task ends.
"""

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.arrays import read_npz
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.tasks.base import Maze, Task, success_rate
from drol.tasks.environments import make_ogbench

EMBEDDED = Path(__file__).parent / "embedded"  # datasets shipped with the package
DOWNLOADS = Path("~/.ogbench/data")  # where the ogbench package keeps its files

MAZES = {
    "pointmaze": {
        "navigate": ("medium", "large", "giant", "teleport"),
        "stitch": ("medium", "large", "giant", "teleport"),
    },
    "antmaze": {
        "navigate": ("medium", "large", "giant", "teleport"),
        "stitch": ("medium", "large", "giant", "teleport"),
        "explore": ("medium", "large", "teleport"),
    },
    "humanoidmaze": {"navigate": ("medium", "large", "giant"), "stitch": ("medium", "large", "giant")},
}
NAME = re.compile(r"(?P<body>\w+)-(?P<maze>\w+)-(?P<data>\w+)-singletask(?P<task>-task\d)?-v0")


def task_names() -> list[str]:
    return [
        f"{body}-{maze}-{data}-singletask{task}-v0"
        for body, datasets in MAZES.items()
        for data, mazes in datasets.items()
        for maze in mazes
        for task in ("", *(f"-task{number}" for number in range(1, 6)))
    ]


def load(name: str, dataset_path: Path | None = None) -> Task:
    match = NAME.fullmatch(name)
    assert match, name
    environment_name = f"{match['body']}-{match['maze']}-singletask{match['task'] or ''}-v0"
    path = dataset_path or find_dataset(f"{match['body']}-{match['maze']}-{match['data']}-v0")
    make = functools.partial(make_ogbench, environment_name)
    environment = make()
    maze = read_maze(environment)
    environment.close()
    validation_path = path.with_name(f"{path.stem}-val.npz")
    return Task(
        name=name,
        train=read_dataset(path, maze),
        validation=read_dataset(validation_path, maze) if validation_path.is_file() else None,
        make_environment=make,
        score=success_rate,
        score_name="success (%)",
        maze=maze,
    )


def find_dataset(dataset_name: str) -> Path:
    folders = (EMBEDDED, DOWNLOADS.expanduser())
    for folder in folders:
        path = folder / f"{dataset_name}.npz"
        if path.is_file():
            return path
    raise InputError(
        f"the dataset {dataset_name}.npz is not in {folders[1]}; put OGBench's file there or name it with --dataset"
    )


def read_maze(environment: Any) -> Maze:
    """The map, start and goal of a single-task maze."""
    environment.reset(seed=0)
    inner = environment.unwrapped
    info = inner.cur_task_info
    return Maze(
        walls=np.asarray(inner.maze_map) == 1,
        unit=float(inner._maze_unit),
        offset=(float(inner._offset_x), float(inner._offset_y)),
        start=(float(info["init_xy"][0]), float(info["init_xy"][1])),
        goal=(float(info["goal_xy"][0]), float(info["goal_xy"][1])),
        goal_radius=float(inner._goal_tol),
    )


def read_dataset(path: Path, maze: Maze) -> Dataset:
    """Trajectories of an OGBench file, rewarded for the goal of this maze."""
    arrays = read_npz(path, ("observations", "actions", "terminals", "qpos"))
    distance = np.linalg.norm(arrays["qpos"][:, :2] - np.asarray(maze.goal), axis=-1)
    success = (distance <= maze.goal_radius).astype(np.float32)
    return Dataset.from_rows(
        observation=arrays["observations"],
        action=arrays["actions"],
        reward=success - 1,
        continues=1 - success,
        last=arrays["terminals"],
    )
