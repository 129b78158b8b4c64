"""Find and load tasks by name, from the built-in sources, installed packages and registered sources."""

import importlib
import importlib.metadata
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from drol.errors import InputError, unknown_name
from drol.tasks.source import TaskSource

if TYPE_CHECKING:
    from drol.tasks.base import Task

SOURCES = {"ogbench": "drol.tasks.ogbench", "d4rl": "drol.tasks.d4rl", "files": "drol.tasks.own_data"}
PLUGINS = "drol.tasks"  # the entry-point group with which installed packages add sources
DEFAULT_TASK = "pointmaze-medium-navigate-singletask-task1-v0"
ADVICE = "`drol data list --all` names all tasks; `drol data import` makes one of your own files"


class Registry:
    """The task sources of this process, by name.

    All sources are imported when the registry is first used. So the name of a task, which may come from an untrusted
    file, never decides which modules are imported.

    Args:
        modules: The modules of the built-in sources, by name; each defines `SOURCE`.
    """

    def __init__(self, modules: Mapping[str, str] = SOURCES):
        self.modules = modules
        self.known: dict[str, TaskSource] | None = None

    @property
    def sources(self) -> dict[str, TaskSource]:
        """Every source by name: first built-in sources, then sources of packages, then registered sources."""
        if self.known is None:
            self.known = {name: importlib.import_module(module).SOURCE for name, module in self.modules.items()}
            for entry_point in importlib.metadata.entry_points(group=PLUGINS):
                self.load_plugin(entry_point)
        return self.known

    def load_plugin(self, entry_point: importlib.metadata.EntryPoint) -> None:
        """Add the source of an installed package; if this fails, warn and skip the source."""
        try:
            loaded = entry_point.load()
            self.add(loaded() if isinstance(loaded, type) else loaded)
        except Exception as error:  # a faulty package must not break the built-in tasks
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(f"the tasks of {entry_point.value} are left out ({reason})", RuntimeWarning, stacklevel=2)

    def add(self, source: TaskSource) -> None:
        """Add a source; replace a source of the same class, and reject a source of another class with the same name."""
        if not isinstance(source, TaskSource) or not isinstance(getattr(source, "name", None), str):
            raise InputError(f"{source!r} is not a task source; it must be a drol.TaskSource with a name")
        if not all(isinstance(task, str) for task in source.task_names()):
            raise InputError(f"task_names of the source {source.name!r} must return a list of texts")
        holder = self.sources.get(source.name, source)
        if source.name in self.modules or class_name(holder) != class_name(source):
            raise InputError(f"the name {source.name!r} is that of {class_name(holder)}; choose another one")
        self.sources[source.name] = source

    def find(self, task: str) -> TaskSource:
        """Return the first source that has a task; the error for an unknown name suggests the nearest known name."""
        names = []
        for source in self.sources.values():
            own = source.task_names()
            if task in own:
                return source
            names += own
        for source in self.sources.values():
            error = source.refusal(task)
            if error is not None:
                raise error
        raise unknown_name("task", task, names, ADVICE)


def class_name(source: TaskSource) -> str:
    return f"{type(source).__module__}.{type(source).__qualname__}"


REGISTRY = Registry()


def known_sources() -> dict[str, TaskSource]:
    """Return every task source by name: built-in sources, sources of installed packages, and registered sources."""
    return dict(REGISTRY.sources)


def register_task_source(source: TaskSource) -> None:
    """Register the tasks of a source in this process.

    docs/extend.md explains it and entry points.

    Afterwards `drol.load_task`, `drol.train` and all other functions that take the name of a task find them. If two
    sources have a task of the same name, the first source is used.

    Args:
        source: The source. Its name must be new, or belong to a source of the same class, which the source replaces.

    Example:
        >>> import drol
        >>> class Robot(drol.TaskSource):
        ...     name = "robot"
        ...
        ...     def task_names(self):
        ...         return ["robot/pick"]
        ...
        ...     def load(self, name, dataset_path=None):
        ...         return drol.task_from(drol.Dataset.from_arrays(*read_my_files()), name)
        >>> drol.register_task_source(Robot())
    """
    REGISTRY.add(source)


def find_source(name: str) -> TaskSource:
    """Return the source of a task; raise `InputError` with the nearest known name if it is unknown."""
    return REGISTRY.find(name)


def load_task(name: str, dataset_path: Path | str | None = None) -> "Task":
    """Load a task by its name: its data, its environment and its score.

    Args:
        name: A task name from `drol data list --all`, or from a registered source.
        dataset_path: A file to use instead of the task's default file.

    Returns:
        The task.

    Example:
        >>> import drol
        >>> task = drol.load_task("pointmaze-medium-navigate-singletask-task1-v0")
        >>> task.train.size
        100000
    """
    return find_source(name).load(name, None if dataset_path is None else Path(dataset_path))
