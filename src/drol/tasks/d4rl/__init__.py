"""The task source of D4RL: the antmazes and hand tasks of the paper. Jax and simulators are imported when used."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drol.tasks.d4rl import names
from drol.tasks.source import DatasetEntry, TaskSource

if TYPE_CHECKING:
    from drol.tasks.base import Task


class D4RL(TaskSource):
    """The D4RL tasks of the paper."""

    name = "d4rl"

    def task_names(self) -> list[str]:
        return list(names.DATASET_URLS)

    def load(self, name: str, dataset_path: Path | None = None) -> "Task":
        from drol.tasks.d4rl.loading import load_d4rl_task

        names.check_name(name)
        return load_d4rl_task(name, dataset_path or names.find_dataset(name))

    def make_environment(self, name: str) -> Callable[[], Any]:
        from drol.tasks.d4rl.environments import environment_maker

        names.check_name(name)
        return environment_maker(name)

    def shares_process(self, name: str) -> bool:
        names.check_name(name)
        return True

    def datasets(self) -> list[DatasetEntry]:
        return names.list_datasets()

    def download_folder(self) -> Path:
        return names.download_folder()

    def file_addresses(self, file_name: str) -> list[str]:
        return [url for url in names.DATASET_URLS.values() if url.endswith(f"/{file_name}")]

    def file_sha256(self, file_name: str) -> str | None:
        return next((sha256 for task, sha256 in names.SHA256.items() if names.file_name(task) == file_name), None)

    def check_file(self, path: Path) -> None:
        from drol.tasks.d4rl.hdf5_rows import read_rows

        read_rows(path)


SOURCE = D4RL()
