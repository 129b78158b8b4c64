"""The interface of task sources. A source is a family of tasks with their data, environments and scores.

This module imports neither jax nor a simulator.
"""

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drol.errors import InputError

if TYPE_CHECKING:
    from drol.tasks.base import Task


@dataclass(frozen=True)
class DatasetEntry:
    """An entry of `drol data list`: the content of a dataset, its location, and how to get it.

    Attributes:
        name: Its name.
        tasks: The tasks that use it.
        transitions: The number of transitions; None if it is unknown or no file is published.
        observation: The shape of one observation, to display.
        action: The size of one action.
        memory: Its size in memory, in bytes.
        files: Its file names: the training part, then the others.
        folder: The folder of the files, or the folder to download them to.
        ways: How to get it: "embedded", "download", "collect", "import", "--dataset".
        damage: The error message if its files exist but cannot be used.
    """

    name: str
    tasks: tuple[str, ...]
    transitions: int | None = None
    observation: str = ""
    action: int | None = None
    memory: int | None = None
    files: tuple[str, ...] = ()
    folder: Path | None = None
    ways: tuple[str, ...] = ()
    damage: str = ""

    @property
    def path(self) -> Path | None:
        """The file of the training part."""
        return self.folder / self.files[0] if self.folder and self.files else None

    @property
    def present(self) -> bool:
        """Whether the training part is on this machine."""
        return self.path is not None and self.path.is_file()

    @property
    def file_bytes(self) -> int:
        """The total size in bytes of its files on this machine."""
        paths = [self.folder / name for name in self.files] if self.folder else []
        return sum(path.stat().st_size for path in paths if path.is_file())

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in the form of `drol data list --json`."""
        return {
            "dataset": self.name,
            "tasks": list(self.tasks),
            "transitions": self.transitions,
            "observation": self.observation,
            "action": self.action,
            "memory_bytes": self.memory,
            "path": str(self.path) if self.path else None,
            "here": self.present,
            "file_bytes": self.file_bytes if self.present else None,
            "ways": list(self.ways),
            "damaged": self.damage or None,
        }


class TaskSource(ABC):
    """A family of tasks. Only `name`, `task_names` and `load` are required; the other methods have defaults.

    examples/new_task_source.py is a complete example.

    A source defines everything about its tasks: the files, the rewards, the environments and the scores. A module that
    defines a source should import jax and simulators inside the methods that need them, so that listing names is fast.

    `drol.register_task_source` registers a source in a program. An installed package registers its source for the
    `drol` command with an entry point of the group `drol.tasks`. See examples/new_task_source.py.

    Attributes:
        name: The name of the source, as `drol data list` shows it.
    """

    name: str

    @abstractmethod
    def task_names(self) -> list[str]:
        """Return the names of all tasks."""

    @abstractmethod
    def load(self, name: str, dataset_path: Path | None = None) -> "Task":
        """Load the data of a task.

        Args:
            name: One of `task_names`.
            dataset_path: A file to use instead of the task's default file.

        Returns:
            The task; `drol.task_from` makes one from arrays.
        """

    def refusal(self, name: str) -> InputError | None:  # noqa: ARG002
        """Return the error for an unknown name that has the form of this source's names; None for other names."""
        return None

    def make_environment(self, name: str) -> Callable[[], Any] | None:
        """Return a function that makes the environment of a task, or None if the task has none.

        The default loads the task. A source with large data should override it and not load the data.
        """
        return self.load(name).make_environment

    def shares_process(self, name: str) -> bool:
        """Return the `shares_process` of a task; the default loads the task."""
        return self.load(name).shares_process

    def datasets(self) -> list[DatasetEntry]:
        """Return an entry for each dataset; by default, one for each task."""
        return [DatasetEntry(name, (name,)) for name in self.task_names()]

    def download_folder(self) -> Path:
        """Return the folder of downloaded files; by default, raise `InputError`, since no file is published."""
        raise InputError(f"the source {self.name} publishes no files")

    def file_addresses(self, file_name: str) -> list[str]:
        """Return the URLs of a published file; by default, raise `InputError`, since no file is published."""
        raise InputError(f"{file_name} cannot be downloaded; the source {self.name} publishes no files")

    def file_sha256(self, file_name: str) -> str | None:  # noqa: ARG002
        """Return the known SHA-256 of a published file; None if it is unknown."""
        return None

    def check_file(self, path: Path) -> None:
        """Raise `InputError` for a downloaded file that is not a complete dataset of this source."""
        raise InputError(f"{path} cannot be checked; the source {self.name} publishes no files")


def wrap_names(names: Iterable[str]) -> str:
    """Wrap names to lines of at most 110 characters, for a help text."""
    return textwrap.fill(" ".join(names), 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
