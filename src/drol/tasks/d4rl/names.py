"""The 18 D4RL tasks of the paper, by their official names. No jax here: names and addresses are cheap to list."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drol.data.files.hdf5 import read_hdf5
from drol.errors import InputError
from drol.tasks.catalogue import DatasetEntry

if TYPE_CHECKING:
    from drol.tasks.base import Task

SERVER = "http://rail.eecs.berkeley.edu/datasets/offline_rl"
ANTMAZE_FILES = {  # task: maze, whether starts and goals vary
    "antmaze-umaze-v2": "u-maze_noisy_multistart_False_multigoal_False",
    "antmaze-umaze-diverse-v2": "u-maze_noisy_multistart_True_multigoal_True",
    "antmaze-medium-play-v2": "big-maze_noisy_multistart_True_multigoal_False",
    "antmaze-medium-diverse-v2": "big-maze_noisy_multistart_True_multigoal_True",
    "antmaze-large-play-v2": "hardest-maze_noisy_multistart_True_multigoal_False",
    "antmaze-large-diverse-v2": "hardest-maze_noisy_multistart_True_multigoal_True",
}
SIZES = {"antmaze": (29, 8), "pen": (45, 24), "door": (39, 28), "hammer": (46, 26), "relocate": (39, 30)}
HUMAN_ROWS = {"pen": 5_000, "door": 6_729, "hammer": 11_310, "relocate": 9_942}  # the other sets are large
ADROIT_TASKS = [f"{kind}-{data}-v1" for kind in HUMAN_ROWS for data in ("human", "cloned", "expert")]
DATASET_URLS = {
    **{task: f"{SERVER}/ant_maze_v2/Ant_maze_{file}_sparse_fixed.hdf5" for task, file in ANTMAZE_FILES.items()},
    **{task: f"{SERVER}/hand_dapg_v1/{task}.hdf5" for task in ADROIT_TASKS},
}
# What the policies that made D4RL's files can make again; of the rest, people's demonstrations are the source.
COLLECTABLE = tuple(name for name in DATASET_URLS if name in ANTMAZE_FILES or "expert" in name)


def task_names() -> list[str]:
    return list(DATASET_URLS)


def load(name: str, dataset_path: Path | None = None) -> "Task":
    from drol.tasks.d4rl.loading import load_d4rl_task

    return load_d4rl_task(name, dataset_path or find_dataset(name))


def datasets() -> list[DatasetEntry]:
    """Every dataset; the number of transitions is that of rows in the published file, to the thousand."""
    entries = []
    for name in DATASET_URLS:
        kind = name.split("-")[0]
        rows = HUMAN_ROWS[kind] if "human" in name else 500_000 if kind == "pen" else 1_000_000
        observation, action = SIZES[kind]
        entries.append(
            DatasetEntry(
                name=name,
                tasks=(name,),
                transitions=rows,
                observation=str(observation),
                action=action,
                memory=rows * (4 * (observation + action) + 13),
                files=(file_name(name),),
                folder=download_folder(),
                ways=("download", *(("collect",) if name in COLLECTABLE else ()), "--dataset"),
            )
        )
    return entries


def file_name(name: str) -> str:
    return DATASET_URLS[name].rsplit("/", 1)[1]


def download_folder() -> Path:
    """Where D4RL keeps its files."""
    return Path(os.environ.get("D4RL_DATASET_DIR") or "~/.d4rl/datasets").expanduser()


def file_addresses(name: str) -> list[str]:
    """Where a file is published."""
    return [url for url in DATASET_URLS.values() if url.endswith(f"/{name}")]


def find_dataset(name: str) -> Path:
    path = download_folder() / file_name(name)
    if not path.is_file():
        collect = f", make one with `drol data collect {name}`" if name in COLLECTABLE else ""
        raise InputError(
            f"the dataset {path.name} of {name} is not in {path.parent}; get it with "
            f"`drol data download {name}`{collect}, put it there, or name a file with --dataset"
        )
    return path


def check_file(path: Path) -> None:
    """Refuse a file that is not a whole D4RL dataset."""
    read_rows(path)


def read_rows(path: Path) -> dict[str, np.ndarray]:
    """The rows of a D4RL file: float32, flags as booleans, one number for each row where one is meant."""
    rows = read_hdf5(path, ("observations", "actions", "rewards", "terminals", "timeouts"))
    for name in ("rewards", "terminals", "timeouts"):
        if rows[name].ndim == 2 and rows[name].shape[1] == 1:
            rows[name] = rows[name][:, 0]
    if len({array.shape[:1] for array in rows.values()}) != 1 or rows["timeouts"].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in rows.items())
        raise InputError(f"dataset file {path} has arrays of different lengths ({shapes}); they must be equal")
    if len(rows["timeouts"]) < 2:
        raise InputError(f"dataset file {path} has {len(rows['timeouts'])} rows; a transition needs two")
    kinds = {"terminals": bool, "timeouts": bool}
    return {name: array.astype(kinds.get(name, np.float32), copy=False) for name, array in rows.items()}
