"""A task source: a family of tasks with their data, environments and scores. No jax and no simulator here."""

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drol.errors import InputError

if TYPE_CHECKING:
    from drol.progress import Report
    from drol.tasks.base import Task


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset as `drol data list` shows it: what it is, where it is or would be, and how to get it.

    Attributes:
        name: Its name.
        tasks: The tasks that are trained on it.
        transitions: How many it has; None if that is unknown or nothing is published.
        observation: The shape of one observation, for people.
        action: The size of one action.
        memory: The bytes that it takes when it is loaded.
        files: Its file names: the training part, then the others.
        folder: The folder where they are, or where a download puts them.
        ways: How to get it: "embedded", "download", "collect", "import", "--dataset".
        damage: What is wrong with its files, if they are here and cannot be used.
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
        """The bytes of those of its files that are on this machine."""
        paths = [self.folder / name for name in self.files] if self.folder else []
        return sum(path.stat().st_size for path in paths if path.is_file())

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as `drol data list --json` prints it."""
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
    """A family of tasks. Only `name`, `task_names` and `load` are needed; the rest has defaults.

    A source owns everything about its tasks: where the files are, what the rewards mean, how an environment is made
    and what a score is. A module that defines one should import jax and simulators inside the methods that need them,
    so that listing names stays quick.

    `drol.register_task_source` makes the tasks known to a program; an installed package makes them known to the
    `drol` command by an entry point of the group `drol.tasks`. See examples/new_task_source.py.

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
            dataset_path: A file to use in place of the task's own.

        Returns:
            The task; `drol.task_from` makes one from arrays.
        """

    def refusal(self, name: str) -> InputError | None:  # noqa: ARG002
        """Return the error for a name that only this source could have and that it does not; None for any other."""
        return None

    def make_environment(self, name: str) -> Callable[[], Any] | None:
        """Return a function that makes the environment of a task, or None if the task has none.

        The default loads the task. A source whose data are large should do without them here.
        """
        return self.load(name).make_environment

    def datasets(self) -> list[DatasetEntry]:
        """Return an entry for each dataset; by default, one for each task."""
        return [DatasetEntry(name, (name,)) for name in self.task_names()]

    def download_folder(self) -> Path:
        """Return the folder where downloaded files go; by default, nothing is published."""
        raise InputError(f"the source {self.name} publishes no files")

    def file_addresses(self, file_name: str) -> list[str]:
        """Return the addresses where a file of a dataset is published; by default, nothing is published."""
        raise InputError(f"{file_name} cannot be downloaded; the source {self.name} publishes no files")

    def file_sha256(self, file_name: str) -> str | None:  # noqa: ARG002
        """Return the sum that a published file is known to have; None if nobody published it."""
        return None

    def check_file(self, path: Path) -> None:
        """Raise `InputError` for a downloaded file that is not a whole dataset of this source."""
        raise InputError(f"{path} cannot be checked; the source {self.name} publishes no files")

    def collectable(self) -> tuple[str, ...]:
        """Return the names of the datasets that `collect` can make; by default, none."""
        return ()

    def collect(
        self,
        name: str,
        path: Path | None = None,
        *,
        episodes: int | None = None,
        seed: int = 0,
        processes: int | None = None,
        experts: Sequence[Path] = (),
        report: "Report | None" = None,
        note: Callable[[str], None] | None = None,
    ) -> dict[Path, int]:
        """Make a dataset on this machine by playing episodes, each of which becomes a trajectory.

        Args:
            name: One of `collectable`.
            path: The file to write; None for one in this folder that is named after the dataset.
            episodes: How many episodes to play; None for as many as the published dataset has trajectories.
            seed: A seed; the same one gives the same arrays.
            processes: How many processes play at once; None for what suits the machine.
            experts: Folders of expert policies, where the dataset needs them.
            report: Called as `report(done, total, what)` after each trajectory.
            note: Called with lines that a person should read.

        Returns:
            The files that were written, with the number of transitions of each.

        Raises:
            KeyboardInterrupt: After Ctrl-C; its message says what is kept, if anything is.
        """
        del path, episodes, seed, processes, experts, report, note  # for sources that can collect
        raise InputError(f"{name} cannot be collected; no dataset of the source {self.name} can")

    def collecting_help(self) -> str:
        """Return what `drol data collect --help` says about the datasets of this source."""
        return ""


def wrap_names(names: Iterable[str]) -> str:
    """Return names on lines of at most 110 characters, for a help text."""
    return textwrap.fill(" ".join(names), 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
