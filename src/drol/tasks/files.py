"""Your own data: `files/NAME` is the dataset that `drol data import ... --out NAME` wrote. There is no environment."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drol.data.files.npz import free_memory
from drol.data.store.manifest import MANIFEST
from drol.data.store.writer import SPLITS, StoredDataset, data_root, dataset_names
from drol.errors import InputError
from drol.tasks.catalogue import DatasetEntry

if TYPE_CHECKING:
    from drol.tasks.base import Episode, Task

PREFIX = "files/"


def task_names() -> list[str]:
    return [PREFIX + name for name in dataset_names()]


def datasets() -> list[DatasetEntry]:
    """Every imported dataset, for `drol data list`; of one that is damaged only the name is known."""
    entries = []
    for name in dataset_names():
        entry = DatasetEntry(
            PREFIX + name, (PREFIX + name,), None, "", None, None, (MANIFEST,), data_root() / name, ("import",)
        )
        try:
            stored = StoredDataset.open(name)
            arrays = stored.arrays("train")
        except InputError:
            entries.append(entry)
            continue
        shape = arrays["observation"].shape[1:]
        splits = [split for split in SPLITS if stored.has(split)]
        entries.append(
            dataclasses.replace(
                entry,
                transitions=stored.manifest["splits"]["train"]["transitions"],
                observation="x".join(map(str, shape)),
                action=arrays["action"].shape[1],
                memory=sum(stored.nbytes(split) for split in splits),
                files=(MANIFEST, *(f"{split}/{name}.npy" for split in splits for name in arrays)),
            )
        )
    return entries


def load(name: str, dataset_path: Path | None = None) -> "Task":
    if dataset_path is not None:
        raise InputError(f"{name} names its data itself; leave --dataset {dataset_path} out or import that file")
    from drol.tasks.base import Task  # here, so that listing tasks does not wait for jax

    stored = StoredDataset.open(name.removeprefix(PREFIX))
    return Task(
        name=name,
        train=read_split(stored, "train"),
        validation=read_split(stored, "validation") if stored.has("validation") else None,
        make_environment=None,
        score=mean_return,
        score_name="return",
        action_box=stored.box if stored.manifest["actions_scaled"] else None,
    )


def read_split(stored: StoredDataset, split: str) -> Any:
    """A split in memory, every byte checked; one that would take half of the free memory stays on disk."""
    from drol.data.dataset import Dataset
    from drol.data.on_disk import MappedDataset

    free = free_memory()
    if free is not None and stored.nbytes(split) > free // 2:
        return MappedDataset.open(stored, split)
    stored.verify(split)
    rows: dict[str, Any] = {name: np.asarray(array) for name, array in stored.arrays(split).items()}
    return Dataset.from_rows(**rows)


def mean_return(episodes: Sequence["Episode"]) -> float:
    """For an environment that somebody adds to the task."""
    return sum(episode.total_reward for episode in episodes) / len(episodes)
