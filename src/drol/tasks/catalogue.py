"""What sources say of their datasets, so that they can be listed and fetched without loading them. No jax here.

A source may have, besides `task_names` and `load`:

    datasets() -> list[DatasetEntry]
    download_folder() -> Path                      where fetched files go
    file_addresses(file_name) -> list[str]         where a file is published
    check_file(path)                               raises InputError for a file that is not a whole dataset
"""

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from drol.errors import InputError
from drol.tasks import SOURCES


@dataclass(frozen=True)
class DatasetEntry:
    """One dataset: what it is, where it is or would be, how it can be got."""

    name: str
    tasks: tuple[str, ...]  # that are trained on it
    transitions: int | None  # None: unknown, or nothing is published
    observation: str  # the shape of one, for people
    action: int | None
    memory: int | None  # bytes it takes when loaded
    files: tuple[str, ...]  # file names: the training part, then the others
    folder: Path | None  # where they are, or where a download puts them
    ways: tuple[str, ...]  # how it can be got: "embedded", "download", "collect", "--dataset"

    @property
    def path(self) -> Path | None:
        """The file of the training part."""
        return self.folder / self.files[0] if self.folder else None

    @property
    def present(self) -> bool:
        return self.path is not None and self.path.is_file()


def all_datasets() -> list[tuple[str, ModuleType, DatasetEntry]]:
    """Every dataset of every source; a source that says nothing of its files has an entry for each task."""
    rows = []
    for source, module_name in SOURCES.items():
        module = importlib.import_module(module_name)
        if hasattr(module, "datasets"):
            rows += [(source, module, entry) for entry in module.datasets()]
        else:
            for name in module.task_names():
                rows.append((source, module, DatasetEntry(name, (name,), None, "", None, None, (), None, ())))
    return rows


def find_dataset_entry(name: str) -> tuple[ModuleType, DatasetEntry]:
    """The dataset of this name, or that of the task of this name."""
    rows = all_datasets()
    for _, module, entry in rows:
        if name == entry.name or name in entry.tasks:
            return module, entry
    nearest = difflib.get_close_matches(name, [entry.name for _, _, entry in rows], 1, cutoff=0)
    raise InputError(f"unknown dataset {name!r}; the nearest of {len(rows)} known datasets is {nearest[0]}")
