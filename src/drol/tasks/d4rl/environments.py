"""Make D4RL's environments on current MuJoCo.

This module does not import jax. It imports a simulator when an environment is made.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from drol.tasks.packages import missing_package

# "#" is a wall. The ant starts in cell (1, 1), the origin. Cells are 4 wide, and the row number increases along y.
MAPS = {
    "umaze": ["#####", "#...#", "###.#", "#...#", "#####"],
    "medium": ["########", "#..##..#", "#..#...#", "##...###", "#..#...#", "#.#..#.#", "#...#..#", "########"],
    "large": [
        "############",
        "#....#.....#",
        "#.##.#.#.#.#",
        "#......#...#",
        "#.####.###.#",
        "#..#.#.....#",
        "##.#.#.#.###",
        "#..#...#...#",
        "############",
    ],
}
GOAL_CELLS = {"umaze": (3, 1), "medium": (6, 6), "large": (7, 9)}  # (row, column)
UNIT = 4.0  # the width of a cell
GOAL_RADIUS = 0.5
HORIZONS = {"umaze": 700, "medium": 1000, "large": 1000, "pen": 100, "door": 200, "hammer": 200, "relocate": 200}


def cell_centre(cell: tuple[int, int]) -> np.ndarray:
    """Return the position of the centre of cell (row, column)."""
    row, column = cell
    return UNIT * np.asarray([column - 1.0, row - 1.0])


def environment_maker(task: str) -> Callable[[], Any]:
    """Return a function that makes the environment of a task."""
    kind, variant, *_ = task.split("-")
    return functools.partial(make_antmaze, variant) if kind == "antmaze" else functools.partial(make_adroit, kind)


def make_antmaze(maze: str) -> Any:
    """Make D4RL's antmaze.

    The goal is sampled for each episode. Within 0.5 of it the reward is 1 and the episode ends; otherwise it is 0.
    """
    try:
        from gymnasium.wrappers import TimeLimit

        from drol.tasks.d4rl.antmaze import AntMaze
    except ImportError as error:
        raise missing_package("D4RL", "d4rl", error) from error
    return TimeLimit(AntMaze(MAPS[maze], GOAL_CELLS[maze]), HORIZONS[maze])


def make_adroit(hand_task: str) -> Any:
    """Make D4RL's pen, door, hammer or relocate."""
    try:
        from gymnasium.wrappers import TimeLimit

        from drol.tasks.d4rl.adroit import Adroit
    except ImportError as error:
        raise missing_package("D4RL", "d4rl", error) from error
    return TimeLimit(Adroit(hand_task), HORIZONS[hand_task])
