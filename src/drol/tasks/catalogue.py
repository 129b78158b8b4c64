"""Find the datasets of all sources, to list or download them. This module does not import jax."""

from collections.abc import Iterable

from drol.errors import InputError, unknown_name
from drol.tasks import known_sources
from drol.tasks.source import DatasetEntry, TaskSource


def all_datasets() -> list[tuple[TaskSource, DatasetEntry]]:
    """Return every dataset of every source."""
    return [(source, entry) for source in known_sources().values() for entry in source.datasets()]


def find_datasets(words: Iterable[str] = (), here: bool = False) -> list[tuple[TaskSource, DatasetEntry]]:
    """Return the datasets that match the words.

    Args:
        words: Words that must each occur in the name of the dataset, of one of its tasks, or of its source.
        here: Whether to return only datasets that are on this machine.
    """
    words = list(words)
    found = [
        (source, entry)
        for source, entry in all_datasets()
        if (entry.present or not here)
        and all(any(word in name for name in (entry.name, *entry.tasks, source.name)) for word in words)
    ]
    if not found and words and not here:
        raise InputError(f"no dataset has {' and '.join(map(repr, words))} in its name; `drol data list` has all")
    return found


def find_dataset_entry(name: str) -> tuple[TaskSource, DatasetEntry]:
    """Return a dataset by its name, or by the name of one of its tasks."""
    rows = all_datasets()
    for source, entry in rows:
        if name == entry.name or name in entry.tasks:
            return source, entry
    raise unknown_name("dataset", name, [entry.name for _, entry in rows], "`drol data list` names all datasets")


def absent_tasks(names: Iterable[str]) -> list[str]:
    """Return the tasks whose data file is missing on this machine."""
    files = {task: entry.path for _, entry in all_datasets() for task in entry.tasks}
    return [name for name in names if (path := files.get(name)) is not None and not path.is_file()]


def example_task(dataset: str) -> str | None:
    """Return a task that uses a dataset, or None if there is none."""
    return next((entry.tasks[0] for _, entry in all_datasets() if entry.name == dataset and entry.tasks), None)
