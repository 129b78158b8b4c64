"""Tasks by name. A source is a module with `task_names()` and `load(name, dataset_path)`, imported when it is used."""

import difflib
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from drol.errors import InputError

if TYPE_CHECKING:
    from drol.tasks.base import Task

SOURCES = {"ogbench": "drol.tasks.ogbench.names", "d4rl": "drol.tasks.d4rl.names", "files": "drol.tasks.files"}
DEFAULT_TASK = "pointmaze-medium-navigate-singletask-task1-v0"


def find_source(name: str) -> str:
    """The module that knows the task; an unknown name is answered with the nearest known one."""
    known = []
    for module_name in SOURCES.values():
        names = importlib.import_module(module_name).task_names()
        if name in names:
            return module_name
        known += names
    if name.startswith("files/"):
        raise InputError(f"unknown task {name!r}; make it with: drol data import FILE... --out {name[6:]}")
    nearest = difflib.get_close_matches(name, known, 1, cutoff=0)
    raise InputError(f"unknown task {name!r}; the nearest of {len(known)} known tasks is {nearest[0]}")


def load_task(name: str, dataset_path: Path | None = None) -> "Task":
    """Load the data of a task and what its environment needs; `dataset_path` replaces the file it would look for."""
    return importlib.import_module(find_source(name)).load(name, dataset_path)
