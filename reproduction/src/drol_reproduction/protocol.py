"""In what a run's training differs from the paper's, by the settings that its results carry."""

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from drol.algorithms import find_algorithm
from drol.errors import InputError
from drol.planning.planned_run import CANDIDATES
from drol.presets.settings import settings
from drol.results.collect import changed_settings
from drol.results.result import Result
from drol.runs.config import RunConfig, differences

WORDS = {"hidden_sizes": "networks", "batch_size": "batch", "learning_rate": "rate", "target_rate": "target rate"}


@functools.cache
def paper_settings(task: str, method: str) -> Mapping[str, Any]:
    """Return the settings of the preset "paper" that are not defaults; none for a method that is not registered."""
    try:
        config = settings(task, method, "paper")
    except InputError:
        return {}
    return json.loads(changed_settings(config, {}, config.steps))


def setting_differences(task: str, method: str, own: Mapping[str, Any]) -> list[str]:
    """Return in what settings differ from the preset "paper" of a task and method; K and the updates do not count.

    Args:
        task: The name of the task.
        method: The name of the algorithm.
        own: The settings that are not defaults, as results have them.
    """
    changed = {each.path[0]: each.after for each in differences(paper_settings(task, method), own)}
    found = []
    for name, value in changed.items():
        if name != CANDIDATES:
            found.append(f"{WORDS.get(name, name)} {shown(default_of(method, name) if name not in own else value)}")
    return sorted(found)


def default_of(method: str, name: str) -> Any:
    fields = (*dataclasses.fields(RunConfig), *dataclasses.fields(find_algorithm(method)))
    return next(field.default for field in fields if field.name == name)


def protocol_differences(row: Result) -> list[str]:
    """Return in what the run of a result differs from the paper.

    A result does not say how many transitions the data has; that must be known from elsewhere.
    """
    return setting_differences(row.task, row.method, json.loads(row.settings))


def words(found: list[str]) -> str:
    """Return differences from the paper for a legend."""
    return ", ".join(found) or "the paper's settings"


def shown(value: Any) -> str:
    """Return a setting as a legend has it: 3x256 for three layers of 256."""
    if isinstance(value, list | tuple):
        return f"{len(value)}x{value[0]}" if len({*value}) == 1 else " ".join(map(str, value)) or "as the others"
    return f"{value:g}" if isinstance(value, float) else str(value)
