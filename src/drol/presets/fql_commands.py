"""Settings of the official commands of FQL (commit 719d044) that are not in the DROL paper's tables.

These commands train from images, or offline and then online. The classes' defaults apply to all other values.
"""

import re
from typing import Any

from drol.presets.paper_hyperparameters import OGBENCH

VISUAL_RUN = {"steps": 500_000, "success_timing": "after"}
VISUAL = {  # by environment and method; every command is for task1
    "visual-cube-single": {
        "fql": {"alpha": 300.0},
        "iql": {"alpha": 1.0},
        "rebrac": {"actor_bc_weight": 1.0, "critic_bc_weight": 0.0, "mask_next_action": False},
        "ifql": {"num_samples": 32},
    },
    "visual-cube-double": {"fql": {"alpha": 100.0}},
    "visual-scene": {"fql": {"alpha": 100.0}},
    "visual-puzzle-3x3": {"fql": {"alpha": 300.0}},
    "visual-puzzle-4x4": {"fql": {"alpha": 300.0}},
}

ONLINE_RUN = {"steps": 1_000_000, "online_steps": 1_000_000}
ONLINE = {  # alpha of FQL, by row of the tables; on OGBench every command is for the default task
    "humanoidmaze-medium": 100.0,
    "antsoccer-arena": 30.0,
    "cube-double": 300.0,
    "scene": 300.0,
    "puzzle-4x4": 1000.0,
    "antmaze-umaze": 10.0,
    "antmaze-umaze-diverse": 10.0,
    "antmaze-medium-play": 10.0,
    "antmaze-medium-diverse": 10.0,
    "antmaze-large-play": 3.0,
    "antmaze-large-diverse": 3.0,
    "pen-cloned": 1000.0,
    "door-cloned": 1000.0,
    "hammer-cloned": 1000.0,
    "relocate-cloned": 10000.0,
}
ONLINE_AS_OFFLINE = {("humanoidmaze-medium", method) for method in ("iql", "rebrac", "ifql")}


def visual_values(task: str, algorithm: str) -> dict[str, Any] | None:
    """Return the hyperparameters of the command for a visual task; None if there is none."""
    name = re.fullmatch(r"(visual-.+)-play-singletask(-task\d)?-v0", task)
    return VISUAL.get(name[1], {}).get(algorithm) if name else None


def visual_notes(task: str, algorithm: str) -> tuple[str, ...]:
    return () if "-task1-" in task else (f"{algorithm}: the official command is for task1; its settings are used here",)


def online_values(group: str | None, algorithm: str) -> dict[str, Any] | None:
    """Return the hyperparameters that the online command changes; None if there is no such command."""
    if algorithm == "fql" and group in ONLINE:
        return {"alpha": ONLINE[group]}
    return {} if (group, algorithm) in ONLINE_AS_OFFLINE else None


def online_notes(group: str, task: str, algorithm: str) -> tuple[str, ...]:
    if group not in OGBENCH or task.endswith("-singletask-v0"):
        return ()
    return (f"{algorithm}: the official command is for the default task; its settings are used here",)
