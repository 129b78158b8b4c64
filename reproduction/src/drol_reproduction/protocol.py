"""Find the differences between a run's training and the paper's, from the settings in its results."""

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
    """Return the differences of settings from the preset "paper" of a task and method, without K and the updates.

    Args:
        task: The name of the task.
        method: The name of the algorithm.
        own: The settings that are not defaults, in the format of results.
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
    """Return the differences between the run of a result and the paper.

    A result does not contain the number of transitions of the data, so this difference is not found.
    """
    return setting_differences(row.task, row.method, json.loads(row.settings))


def words(found: list[str]) -> str:
    """Return the text of a legend for differences from the paper."""
    return ", ".join(found) or "the paper's settings"


def shown(value: Any) -> str:
    """Return a setting in the format of a legend, such as 3x256 for three layers of 256."""
    if isinstance(value, list | tuple):
        return f"{len(value)}x{value[0]}" if len({*value}) == 1 else " ".join(map(str, value)) or "as the others"
    return f"{value:g}" if isinstance(value, float) else str(value)
