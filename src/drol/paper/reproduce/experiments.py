"""What each table and figure of the paper is made of, at each scale: blocks of tasks, methods, seeds and values of K.

At the scale "paper" these are the paper's own. At the scale "small" they are what two cores carry, in the order in
which they are worth having; a maze of a point stands in for most mazes of ants, which are too much.
"""

from dataclasses import dataclass

from drol.errors import unknown_name
from drol.paper.presets import METHODS, TASKS
from drol.paper.scales import SCALES

LADDER = (1, 2, 4, 8, 16, 32, 64)  # K, as the paper's protocol tries them
DEFAULT_K = 16
TUNED = "drol*"  # the column of DROL whose K was chosen by the protocol; "drol" is that with K = 16
COLUMNS = ("bc", "iql", "rebrac", "fawac", "fbrac", "ifql", "deflow", "sorl", "fql", "drol", TUNED)  # as printed
EXPERIMENTS = ("table1", "full", "fig2", "fig3", "fig4")


@dataclass(frozen=True)
class Block:
    """Runs that belong together: every method on every task, with every seed; DROL with every K."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...] = ("drol",)
    seeds: int = 8
    candidates: tuple[int, ...] = (DEFAULT_K,)
    best_of: tuple[int, ...] = ()  # how else the last policy is evaluated, beside its one pass


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
    return BLOCKS[scale][experiment]


def ladder_of(scale: str) -> tuple[int, ...]:
    """Return the values of K among which the protocol chooses at a scale, from small to large."""
    return {"paper": LADDER, "small": tuple(sorted(SMALL_LADDER)), "smoke": (1, 4)}[scale]
