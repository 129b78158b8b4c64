"""The task source of OGBench: single tasks in mazes and on tables, from states or images.

Jax and simulators are imported when used.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drol.tasks.ogbench import names
from drol.tasks.packages import missing_package
from drol.tasks.source import DatasetEntry, TaskSource

if TYPE_CHECKING:
    from drol.tasks.base import Task


class OGBench(TaskSource):
    """The single tasks of OGBench."""

    name = "ogbench"

    def task_names(self) -> list[str]:
        return list(names.all_names())

    def load(self, name: str, dataset_path: Path | None = None) -> "Task":
        from drol.tasks.ogbench.loading import load_single_task

        parts = names.find_name(name)
        return load_single_task(parts, dataset_path or names.find_dataset(parts))

    def make_environment(self, name: str) -> Callable[[], Any]:
        from drol.tasks.ogbench.loading import environment_maker

        return environment_maker(names.find_name(name))

    def shares_process(self, name: str) -> bool:
        return names.find_name(name).shares_process

    def datasets(self) -> list[DatasetEntry]:
        return names.list_datasets()

    def download_folder(self) -> Path:
        return names.download_folder()

    def file_addresses(self, file_name: str) -> list[str]:
        """Return the URL from which the installed ogbench package downloads a file."""
        try:
            from ogbench.utils import DATASET_URL
        except ImportError as error:
            raise missing_package("OGBench", "ogbench", error) from error
        return [f"{DATASET_URL}/{file_name}"]

    def check_file(self, path: Path) -> None:
        from drol.data.readers.npz import check_npz

        check_npz(path, ("observations", "actions", "terminals"))


SOURCE = OGBench()
