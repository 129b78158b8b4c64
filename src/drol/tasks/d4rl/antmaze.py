"""D4RL's antmaze, built on OGBench's ant, which has the same masses, joints, torques and time step as D4RL's."""

import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from ogbench.locomaze.ant import AntEnv

from drol.tasks.d4rl.environments import GOAL_RADIUS, UNIT, cell_centre

WALL_HEIGHT = 2.0


class AntMaze(gymnasium.Wrapper):
    """A maze whose ant starts near the origin; the goal is 0 to 1.5 beyond the centre of its cell on both axes."""

    def __init__(self, rows: Sequence[str], goal_cell: tuple[int, int]):
        super().__init__(make_ant(rows))
        self.goal_cell = cell_centre(goal_cell)
        self.goal = self.goal_cell

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        observation, info = self.env.reset(seed=seed, options=options)
        # The sum of two random offsets, as in D4RL: one for the cell, one for the goal.
        self.goal = self.goal_cell + self.np_random.uniform(0, 1, 2) + self.np_random.uniform(0, 0.5, 2)
        return observation, info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        observation, _, _, _, info = self.env.step(np.clip(action, -1, 1))
        success = bool(np.linalg.norm(observation[:2] - self.goal) <= GOAL_RADIUS)
        return observation, float(success), success, False, {**info, "success": success}


def make_ant(rows: Sequence[str]) -> AntEnv:
    """Make the ant environment with the walls of a map; remove its temporary model file."""
    tree = ElementTree.parse(AntEnv.xml_file)
    world = tree.find(".//worldbody")
    assert world is not None
    for row, line in enumerate(rows):
        for column, character in enumerate(line):
            if character == "#":
                x, y = cell_centre((row, column))
                ElementTree.SubElement(
                    world,
                    "geom",
                    name=f"wall_{row}_{column}",
                    type="box",
                    pos=f"{x} {y} {WALL_HEIGHT / 2}",
                    size=f"{UNIT / 2} {UNIT / 2} {WALL_HEIGHT / 2}",
                    contype="1",
                    conaffinity="1",
                    material="wall",
                )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "antmaze.xml"
        tree.write(path)
        return AntEnv(xml_file=str(path))
