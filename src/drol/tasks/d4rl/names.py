"""The 18 D4RL tasks of the paper, by their official names, and where their data are. No jax and no simulator here."""

import os
from pathlib import Path

from drol.errors import InputError, unknown_name
from drol.tasks.source import DatasetEntry

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


def check_name(task: str) -> None:
    """Refuse a name that is not that of a task."""
    if task not in DATASET_URLS:
        raise unknown_name("task of D4RL", task, DATASET_URLS)


def list_datasets() -> list[DatasetEntry]:
    """Return an entry for every dataset; its transitions are the rows of the published file, to the thousand."""
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
    """Return the folder where D4RL keeps its files."""
    return Path(os.environ.get("D4RL_DATASET_DIR") or "~/.d4rl/datasets").expanduser()


def find_dataset(name: str) -> Path:
    """Return the file of a task; if it is not here, the error says how to get it."""
    path = download_folder() / file_name(name)
    if not path.is_file():
        collect = f", make one with `drol data collect {name}`" if name in COLLECTABLE else ""
        raise InputError(
            f"the dataset {path.name} of {name} is not in {path.parent}; get it with "
            f"`drol data download {name}`{collect}, put it there, or name a file with --dataset"
        )
    return path
