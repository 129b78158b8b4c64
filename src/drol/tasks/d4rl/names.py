"""The names of the 18 D4RL tasks of the paper, and the locations of their data.

This module imports neither jax nor a simulator.
"""

import os
from pathlib import Path

from drol.errors import InputError, unknown_name
from drol.tasks.source import DatasetEntry

SERVER = "http://rail.eecs.berkeley.edu/datasets/offline_rl"
ANTMAZE_FILES = {  # each file name gives the maze and states whether starts and goals vary
    "antmaze-umaze-v2": "u-maze_noisy_multistart_False_multigoal_False",
    "antmaze-umaze-diverse-v2": "u-maze_noisy_multistart_True_multigoal_True",
    "antmaze-medium-play-v2": "big-maze_noisy_multistart_True_multigoal_False",
    "antmaze-medium-diverse-v2": "big-maze_noisy_multistart_True_multigoal_True",
    "antmaze-large-play-v2": "hardest-maze_noisy_multistart_True_multigoal_False",
    "antmaze-large-diverse-v2": "hardest-maze_noisy_multistart_True_multigoal_True",
}
SIZES = {"antmaze": (29, 8), "pen": (45, 24), "door": (39, 28), "hammer": (46, 26), "relocate": (39, 30)}
HUMAN_ROWS = {"pen": 5_000, "door": 6_729, "hammer": 11_310, "relocate": 9_942}  # the other datasets are larger
ADROIT_TASKS = [f"{kind}-{data}-v1" for kind in HUMAN_ROWS for data in ("human", "cloned", "expert")]
DATASET_URLS = {
    **{task: f"{SERVER}/ant_maze_v2/Ant_maze_{file}_sparse_fixed.hdf5" for task, file in ANTMAZE_FILES.items()},
    **{task: f"{SERVER}/hand_dapg_v1/{task}.hdf5" for task in ADROIT_TASKS},
}
# Checksums of the published files, from TensorFlow Datasets, which has none for the relocate files.
SHA256 = {
    "antmaze-umaze-v2": "5ef15257771c50ef4d23c7de001750e96c8bb5d9b6a5e4a821dcfb3065fbd130",
    "antmaze-umaze-diverse-v2": "c771dd63963cd7d9f55f24a6d809064f6b82250a6aeac4c9d13f9a1d06e8c932",
    "antmaze-medium-play-v2": "c9fec1c1daad97c71d61bd47f4ccc9f74faa855b8a2d2e8107d5378018827e5b",
    "antmaze-medium-diverse-v2": "ad9dcbac05d1f8744a7a216083f513662f43f64f28a4a5eb225e9811902dfae7",
    "antmaze-large-play-v2": "6d353df2457829925d7f9d4b0215587469908bd57478ea76f16417cfa944f471",
    "antmaze-large-diverse-v2": "84f775eb7956ea9cc766704710dc520a8ab357adc7522ade47f556f0e335e284",
    "pen-human-v1": "209e345b2150b633f30a11612612c60f49e941f127ce6c4dc0cd790501c46f9f",
    "pen-cloned-v1": "6d1a982cee1950501bedebbddedbcbb377e6284d379986c83abac8a6c0be0c22",
    "pen-expert-v1": "3791b8ca6a802061770af2977c051ac3ae261488210ce73788760a5b8308f374",
    "door-human-v1": "f9691288c3ddf2b4e7b31bdae0d8444b80ba035515495f8a902d60c43ee09370",
    "door-cloned-v1": "1f6a60ecc4d2a2e5c02f41dd3412be61bb265a33dcf120ceee9e9682d4fe4d48",
    "door-expert-v1": "66df4cd4e0a1e0b72ea72653ce088e29ecbfa99bac3cd2b52e64092e9a0aaab4",
    "hammer-human-v1": "3e42f3f49b5c92a901601dfe867c6c62a9651cbe79f6760ec8b402a15816a498",
    "hammer-cloned-v1": "e48d75b159bdd72f51d3f01448d3eca4d38275714e11e995c14a36f6cf159db3",
    "hammer-expert-v1": "1c069a0f6e4852493023c77dc3b3a12d8d5ac2e3a034827fea3ab8a161e7185f",
}
# Datasets that can be collected with D4RL's policies. The others are based on human demonstrations.
COLLECTABLE = tuple(name for name in DATASET_URLS if name in ANTMAZE_FILES or "expert" in name)


def check_name(task: str) -> None:
    """Raise an error unless a name is a D4RL task."""
    if task not in DATASET_URLS:
        raise unknown_name("task of D4RL", task, DATASET_URLS)


def list_datasets() -> list[DatasetEntry]:
    """Return an entry for every dataset; `transitions` is the approximate number of rows of the published file."""
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
    """Return D4RL's folder of downloaded files."""
    return Path(os.environ.get("D4RL_DATASET_DIR") or "~/.d4rl/datasets").expanduser()


def find_dataset(name: str) -> Path:
    """Return the file of a task; if it is missing, raise `InputError` that explains how to get it."""
    path = download_folder() / file_name(name)
    if not path.is_file():
        minutes = "15" if name in ANTMAZE_FILES else "6 to 22"  # measured on one core
        collect = f"make one with `drol data collect {name} --expert FOLDER` (about {minutes} min on one core)"
        collect = f", {collect}" if name in COLLECTABLE else ""
        raise InputError(
            f"the dataset {path.name} of {name} is not in {path.parent}; get it with "
            f"`drol data download {name}`{collect}, put it there, or name a file with --dataset"
        )
    return path
