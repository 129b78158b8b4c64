"""The storm's tasks: the same small data in memory and on disk, and an environment that breaks on command."""

import dataclasses
import os
from pathlib import Path

import numpy as np
from toys import random_rows, tiny_task

import drol
from drol.data.on_disk import OnDiskDataset
from drol.data.trajectory_rows import ROW_ARRAYS
from storm.environment import ObedientWalk

DATA = "DROL_STORM_DATA"  # names the folder for the data on disk
LENGTHS = [50, 100, 50]


class StormTasks(drol.TaskSource):
    """`storm/memory` and `storm/disk`."""

    name = "storm"

    def task_names(self) -> list[str]:
        return ["storm/memory", "storm/disk"]

    def make_environment(self, name: str):
        return ObedientWalk

    def load(self, name: str, dataset_path: Path | None = None) -> drol.Task:
        task = tiny_task(name=name, make_environment=ObedientWalk)
        if name == "storm/disk":
            folder = Path(os.environ[DATA])
            arrays = {each: np.load(folder / f"{each}.npy", mmap_mode="r") for each in ROW_ARRAYS}
            task = dataclasses.replace(task, train=OnDiskDataset(arrays, task.train.fingerprint()))
        return task


def write_data(folder: Path) -> None:
    """Write the data of `storm/memory` to disk for `storm/disk`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in random_rows(LENGTHS).items():
        np.save(folder / f"{name}.npy", array)
