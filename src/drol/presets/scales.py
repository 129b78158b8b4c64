"""Scales of a reproduction: the sizes at which the paper's experiments are run.

Each scale except "paper" is also a preset of the same name, for example `drol train TASK --preset short`.

short:  the paper's settings in everything, with fewer updates.
medium: networks of three layers of 256 and one discount for all methods of a task; all other settings are the paper's.
small:  for the point mazes, which are not tasks of the paper: small networks, high learning rates, minutes per run.
        Other tasks get the networks of "medium" and the paper's rates.
smoke:  a minute per run, to check that every command works.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from drol.algorithms.base import SMALL, Algorithm

# The point mazes take the settings of the ant in the large maze. Their observations are standardised and multiplied by
# 4, so that a small network distinguishes nearby places.
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
INTERVALS = {"log_interval": 1_000, "evaluation_interval": 10_000, "checkpoint_interval": 10_000}
SHORT_RUN = INTERVALS | {"steps": 40_000}  # FQL's public learning curve on cube-single reaches 85 after 40,000 updates
MEDIUM_RUN = INTERVALS | {"steps": 200_000, "evaluation_interval": 20_000}
MEDIUM_CUBE_RUN = INTERVALS | {"steps": 60_000}
SMALL_RUN = INTERVALS | {"steps": 70_000, "log_interval": 2_500}
SMOKE_RUN = {
    "steps": 60,
    "log_interval": 20,
    "evaluation_interval": 20,
    "evaluation_episodes": 2,
    "checkpoint_interval": 60,
}
MEDIUM_NETWORKS = {"hidden_sizes": (256, 256, 256)}
SHRUNK = ("short", "medium", "small", "smoke")  # the scales that are presets of the same name
SCALES = ("paper", *SHRUNK)


def like_task(task: str) -> str:
    """Return the task of the paper whose settings a task uses."""
    return POINT_LIKE if task.startswith(POINT) else task


def shrunk_hyperparameters(task: str, kind: type[Algorithm], scale: str) -> dict[str, Any]:
    """Return the algorithm's hyperparameters in which a scale differs from the paper."""
    changes: Mapping[str, Any] = {}
    if scale == "smoke":
        changes = {"hidden_sizes": (16, 16), "batch_size": 16}
    elif scale == "small" and task.startswith(POINT):
        changes = SMALL
    elif scale in ("small", "medium"):
        changes = MEDIUM_NETWORKS
    fields = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in changes.items() if name in fields}


def shrunk_run(task: str, scale: str) -> dict[str, Any]:
    """Return the settings of a run in which a scale differs from the paper."""
    if scale == "short":
        return SHORT_RUN
    if scale == "medium":
        return MEDIUM_CUBE_RUN if task.startswith("cube-single") else MEDIUM_RUN
    run = POINT_RUN if task.startswith(POINT) else SMALL_RUN
    return run | (SMOKE_RUN if scale == "smoke" else {})
