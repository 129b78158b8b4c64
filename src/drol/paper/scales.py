"""Scales of a reproduction: the size at which the paper's experiments are run.

A scale is also a preset: `drol train TASK --preset small`. It takes the paper's settings for the task, makes the
networks smaller, their rates higher and the training shorter, and changes nothing else but what a point's maze needs.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from drol.algorithms.base import SMALL, Algorithm

# The mazes of a point are learned in minutes with observations spread out, so that a small network tells nearby places
# apart. They are not among the paper's tasks; the settings are those of the ant in the large maze.
POINT = "pointmaze"
POINT_LIKE = "antmaze-large-navigate-singletask-task1-v0"
POINT_RUN = {
    "steps": 30_000,
    "log_interval": 1_000,
    "evaluation_interval": 5_000,
    "checkpoint_interval": 10_000,
    "standardise_observations": True,
    "observation_scale": 4.0,
    "success_timing": "after",
}
REST_RUN = {"steps": 70_000, "log_interval": 2_500, "evaluation_interval": 10_000, "checkpoint_interval": 10_000}
SMOKE_RUN = {
    "steps": 60,
    "log_interval": 20,
    "evaluation_interval": 20,
    "evaluation_episodes": 2,
    "checkpoint_interval": 60,
}
WIDER = {"hidden_sizes": (256, 256, 256)}
SHRUNK = ("small", "smoke")  # the scales that are presets of their own; the scale "paper" is the preset "paper"
SCALES = ("paper", *SHRUNK)


def like_task(task: str) -> str:
    """Return the task of the paper whose settings hold for a task."""
    return POINT_LIKE if task.startswith(POINT) else task


def shrunk_hyperparameters(task: str, kind: type[Algorithm], scale: str) -> dict[str, Any]:
    """Return the hyperparameters that a scale changes of the paper's, those of them that the algorithm has."""
    if scale == "smoke":
        changes: Mapping[str, Any] = {"hidden_sizes": (16, 16), "batch_size": 16}
    else:
        changes = SMALL if task.startswith(POINT) else {**SMALL, **WIDER}
    fields = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in changes.items() if name in fields}


def shrunk_run(task: str, scale: str) -> dict[str, Any]:
    """Return the settings of a run that a scale changes of the paper's."""
    run = POINT_RUN if task.startswith(POINT) else REST_RUN
    return run | (SMOKE_RUN if scale == "smoke" else {})
