"""Define the runs of each table and figure of the paper at each scale: blocks of tasks, methods, seeds and values of K.

The scale "paper" has the paper's own runs. The other scales have the runs that two cores can train, the most useful
first; results/plan_2026-11-18.md explains the choice for "short" and "medium". At the scale "small" a point maze
replaces the ant mazes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drol.errors import InputError, unknown_name
from drol.presets.scales import SCALES
from drol.presets.settings import METHODS, TASKS

LADDER = (1, 2, 4, 8, 16, 32, 64)  # the values of K that the paper's protocol tries
DEFAULT_K = 16
TUNED = "drol*"  # the column of DROL with the K that the protocol chooses; the column "drol" has K = 16
COLUMNS = ("bc", "iql", "rebrac", "fawac", "fbrac", "ifql", "deflow", "sorl", "fql", "drol", TUNED)  # printed order
EXPERIMENTS = ("table1", "full", "fig2", "fig3", "fig4", "controls")  # "controls": our variants that DROL must beat


@dataclass(frozen=True)
class Block:
    """Runs that belong together: every method on every task, with every seed; DROL with every K."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...] = ("drol",)
    seeds: int = 8
    candidates: tuple[int, ...] = (DEFAULT_K,)
    best_of: tuple[int, ...] = ()  # further evaluations of the last policy: best of N, beside one pass
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the scale's preset


def numbered(group: str, *numbers: int) -> tuple[str, ...]:
    """Return single tasks of an OGBench dataset by their numbers: "cube-single-play", 1, 2."""
    return tuple(f"{group}-singletask-task{number}-v0" for number in numbers)


def short_name(task: str) -> str:
    """Return the name of a task as tables and figures show it: cube-single-task2."""
    return task.replace("-navigate", "").replace("-play", "").replace("-singletask", "").removesuffix("-v0")


MEDIUM, CUBE = "pointmaze-medium-navigate", numbered("cube-single-play", 2)
LARGER = (
    *numbered("pointmaze-large-navigate", 1),
    *numbered("antmaze-large-navigate", 1),
    *numbered("scene-play", 2),
    *numbered("puzzle-3x3-play", 4),
)
SENSITIVITY = (  # the 20 panels of the paper's figure 4; its four Adroit panels seem to be means over three datasets
    *numbered("antmaze-giant-navigate", 3),
    *numbered("antmaze-large-navigate", 1),
    *numbered("antsoccer-arena-navigate", 4),
    *numbered("cube-double-play", 3),
    *numbered("cube-single-play", 1),
    *numbered("humanoidmaze-large-navigate", 1),
    *numbered("humanoidmaze-medium-navigate", 1),
    *numbered("puzzle-3x3-play", 2),
    *numbered("puzzle-4x4-play", 1),
    *numbered("scene-play", 2),
    *(task for task in TASKS if task.startswith("antmaze") and task.endswith("-v2")),
    *(task for task in TASKS if task.endswith("-v1")),
)
METRICS = (*numbered("antmaze-giant-navigate", 3), *numbered("cube-double-play", 3), *numbered("scene-play", 2))
SMALL_LADDER = (16, 1, 4, 64)
SCENE, ANTMAZE = numbered("scene-play", 2), numbered("antmaze-large-navigate", 1)
SHORT_TABLE = (Block(CUBE, ("fql",), seeds=3), Block(CUBE, ("drol",), seeds=3))
SHORT_METRICS = (
    Block(SCENE, seeds=1, candidates=SMALL_LADDER, changes={"steps": 20_000, "evaluation_interval": 20_000}),
)
MEDIUM_TABLE = (
    Block(CUBE, ("iql",), seeds=1, changes={"steps": 100_000}),
    Block(SCENE, ("drol", "fql"), seeds=3),
    Block(SCENE, ("drol",), seeds=3, candidates=(1,)),
    Block(SCENE, ("rebrac", "iql"), seeds=3),
    Block(ANTMAZE, ("drol", "fql", "rebrac"), seeds=3),
)
SHORT_CONTROLS = (
    Block(CUBE, seeds=1, changes={"q_weight": 0.0, "steps": 20_000}),  # only cloning
    Block(CUBE, ("drol-equation",), seeds=1, changes={"steps": 20_000}),  # the loss as printed in the paper
)
MEDIUM_CONTROLS = (
    Block(CUBE, ("drol",), seeds=5),
    Block(CUBE, ("drol-control",), seeds=5, changes={"winner": "lagged"}),
    Block(CUBE, ("drol-control",), seeds=5, changes={"winner": "random"}),
)
SMALL_TABLE = (
    Block(numbered(MEDIUM, 1), METHODS, seeds=3),
    Block(CUBE, ("drol", "fql", "iql", "bc"), seeds=2),
    Block(numbered(MEDIUM, 2, 3, 4, 5), METHODS, seeds=1),
    Block(numbered(MEDIUM, 1, 2, 3, 4, 5), (TUNED,), seeds=1),
    Block(CUBE, ("rebrac", "ifql", "deflow", "sorl", "fbrac", "fawac"), seeds=1),
    Block(LARGER, ("drol", "fql"), seeds=1),
)
SMALL_SWEEP = (
    Block(numbered(MEDIUM, 1, 4), seeds=3, candidates=SMALL_LADDER, best_of=(4, 16)),
    Block(CUBE, seeds=1, candidates=SMALL_LADDER, best_of=(4, 16)),
    Block(LARGER[:2], seeds=1, candidates=SMALL_LADDER, best_of=(4, 16)),
)
BLOCKS: dict[str, dict[str, tuple[Block, ...]]] = {
    "paper": {
        "table1": (Block(TASKS, COLUMNS),),
        "full": (Block(TASKS, COLUMNS),),
        "fig2": (Block(numbered(MEDIUM, 1), seeds=1),),
        "fig3": (Block(METRICS, candidates=LADDER),),
        "fig4": (Block(SENSITIVITY, candidates=LADDER[:-1]),),
    },
    "short": {"table1": SHORT_TABLE, "full": SHORT_TABLE, "fig3": SHORT_METRICS, "controls": SHORT_CONTROLS},
    "medium": {"table1": MEDIUM_TABLE, "full": MEDIUM_TABLE, "controls": MEDIUM_CONTROLS},
    "small": {
        "table1": SMALL_TABLE,
        "full": SMALL_TABLE,
        "fig2": (Block(numbered(MEDIUM, 1), seeds=3),),
        "fig3": SMALL_SWEEP,
        "fig4": SMALL_SWEEP,
    },
    "smoke": {
        "table1": (Block(numbered(MEDIUM, 1), COLUMNS, seeds=2),),
        "full": (Block(numbered(MEDIUM, 1), COLUMNS, seeds=2),),
        "fig2": (Block(numbered(MEDIUM, 1), seeds=1),),
        "fig3": (Block(numbered(MEDIUM, 1), seeds=2, candidates=(1, 4), best_of=(2,)),),
        "fig4": (Block(numbered(MEDIUM, 1), seeds=2, candidates=(1, 4), best_of=(2,)),),
    },
}


def blocks_of(experiment: str, scale: str) -> tuple[Block, ...]:
    """Return the blocks of a table or figure at a scale."""
    for what, name, known in (("experiment", experiment, EXPERIMENTS), ("scale", scale, SCALES)):
        if name not in known:
            raise unknown_name(what, name, known)
    if experiment not in BLOCKS[scale]:
        having = ", ".join(each for each in SCALES if experiment in BLOCKS[each])
        raise InputError(f"{experiment} has no runs at scale {scale}; it has runs at scale {having}")
    return BLOCKS[scale][experiment]


def ladder_of(scale: str) -> tuple[int, ...]:
    """Return the values of K that the protocol tries at a scale, in increasing order."""
    return {"paper": LADDER, "smoke": (1, 4)}.get(scale, tuple(sorted(SMALL_LADDER)))
