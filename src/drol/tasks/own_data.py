"""Tasks of imported data: `files/NAME` is the dataset of `drol data import ... --out NAME`, without an environment."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from drol.data.store.layout import MANIFEST, data_root, dataset_names
from drol.data.store.stored import StoredDataset
from drol.errors import InputError
from drol.machine import free_memory, leaves_room
from drol.tasks.source import DatasetEntry, TaskSource

if TYPE_CHECKING:
    from drol.data.dataset import Transitions
    from drol.tasks.base import Task

PREFIX = "files/"


class Files(TaskSource):
    """The imported datasets."""

    name = "files"

    def task_names(self) -> list[str]:
        return [PREFIX + name for name in dataset_names()]

    def load(self, name: str, dataset_path: Path | None = None) -> "Task":
        from drol.tasks.base import Task, mean_return

        if dataset_path is not None:
            raise InputError(
                f"{name} already uses an imported dataset; remove --dataset {dataset_path}, or import that file as a "
                "new dataset"
            )
        stored = StoredDataset.open(name.removeprefix(PREFIX))
        return Task(
            name=name,
            train=read_split(stored, "train"),
            validation=read_split(stored, "validation") if stored.has("validation") else None,
            make_environment=None,
            score=mean_return,
            score_name="return",
            action_box=stored.box if stored.manifest["actions_scaled"] else None,
            observation_dimensions=stored.dimensions["observation"],
            action_dimensions=stored.dimensions["action"],
            control_rate=stored.control_rate,
        )

    def refusal(self, name: str) -> InputError | None:
        if not name.startswith(PREFIX):
            return None
        make = f"drol data import FILE... --out {name.removeprefix(PREFIX)}"
        return InputError(f"unknown task {name!r}; make it with: {make}, or see `drol data list files` for others")

    def make_environment(self, name: str) -> None:
        """Return None, since imported data have no environment."""

    def datasets(self) -> list[DatasetEntry]:
        return [describe_dataset(name) for name in dataset_names()]


def describe_dataset(name: str) -> DatasetEntry:
    """Return the entry of an imported dataset; for a damaged dataset, only its name and the error."""
    task = PREFIX + name
    entry = DatasetEntry(task, (task,), files=(MANIFEST,), folder=data_root() / name, ways=("import",))
    try:
        stored = StoredDataset.open(name)
        headers = stored.headers("train")
    except InputError as error:
        return dataclasses.replace(entry, damage=str(error))
    return dataclasses.replace(
        entry,
        transitions=stored.manifest["splits"]["train"]["transitions"],
        observation="x".join(map(str, headers["observation"].shape[1:])),
        action=headers["action"].shape[1],
        memory=sum(stored.nbytes(split) for split in stored.splits),
        files=(MANIFEST, *(f"{split}/{array}.npy" for split in stored.splits for array in headers)),
    )


def read_split(stored: StoredDataset, split: str) -> "Transitions":
    """Load a split and verify its checksums, or open it on disk if loading leaves too little memory for training."""
    from drol.data.dataset import Dataset  # here, so that listing tasks does not import jax
    from drol.data.on_disk import OnDiskDataset

    if not leaves_room(sum(stored.nbytes(each) for each in stored.splits), free_memory()):
        return OnDiskDataset.open(stored, split)
    stored.verify(split)
    rows: dict[str, Any] = {name: np.asarray(array) for name, array in stored.arrays(split).items()}
    return Dataset.from_rows(**rows)


SOURCE = Files()
