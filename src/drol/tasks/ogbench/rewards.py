"""Compute the rewards of OGBench's single tasks from the simulator states in its files.

A task has n sub-goals, of which k are satisfied in the current state s_t:

    r = k - n,    the task ends where k = n.

The state before the action is used, as in the environments since OGBench 1.2 (success timing "pre").
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

FIRST_OBJECT = 14  # qpos of manipulation tasks: 14 numbers of the arm and the gripper,
CUBE_WIDTH = 7  # then position and orientation of each cube, then buttons, drawer and window
BALL = 15  # qpos of antsoccer: 15 numbers of the ant, then the ball
TOLERANCE = 0.04  # metres, for cubes, drawer and window


@dataclass(frozen=True)
class PlaceGoal:
    """One sub-goal: the agent or the ball is within a radius of a point in the plane."""

    column: int  # index of its x in qpos; y follows
    place: np.ndarray  # [2]
    radius: float
    subgoals: int = 1
    arrays: tuple[str, ...] = ("qpos",)

    def satisfied(self, _name: str, rows: np.ndarray) -> np.ndarray:
        """Return the number of sub-goals that each row of an array satisfies."""
        distance = np.linalg.norm(rows[:, self.column : self.column + 2] - self.place, axis=-1)
        return (distance <= self.radius).astype(np.uint8)


@dataclass(frozen=True)
class ObjectGoal:
    """Target positions of cubes, states of buttons and positions of slides (drawer and window); each is optional."""

    cubes: np.ndarray  # [cubes, 3]
    buttons: np.ndarray | None  # [buttons]
    slides: dict[int, float]  # column in qpos -> position

    @property
    def subgoals(self) -> int:
        return len(self.cubes) + (0 if self.buttons is None else len(self.buttons)) + len(self.slides)

    @property
    def arrays(self) -> tuple[str, ...]:
        positions = ("qpos",) if len(self.cubes) or self.slides else ()
        return positions if self.buttons is None else (*positions, "button_states")

    def satisfied(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the number of sub-goals that each row of an array satisfies."""
        if name == "button_states":
            return (rows == self.buttons).sum(axis=-1, dtype=np.uint8)
        count = np.zeros(len(rows), np.uint8)
        for number, place in enumerate(self.cubes):
            first = FIRST_OBJECT + number * CUBE_WIDTH
            count += np.linalg.norm(place - rows[:, first : first + 3], axis=-1) <= TOLERANCE
        for column, position in self.slides.items():
            count += np.abs(rows[:, column] - position) <= TOLERANCE
        return count


Goal = PlaceGoal | ObjectGoal


def read_goal(environment: Any) -> Goal:
    """Read the goal of a single-task environment after a reset."""
    inner = environment.unwrapped
    if hasattr(inner, "maze_map"):
        has_ball = hasattr(inner, "get_agent_ball_xy")
        return PlaceGoal(BALL if has_ball else 0, np.asarray(inner.cur_goal_xy), float(inner._goal_tol))
    cubes = inner._data.mocap_pos.copy() if hasattr(inner, "_num_cubes") else np.empty((0, 3))
    buttons = inner._target_button_states.copy() if hasattr(inner, "_num_buttons") else None
    slides = {}
    if hasattr(inner, "_target_drawer_pos"):
        drawer = FIRST_OBJECT + len(cubes) * CUBE_WIDTH + inner._num_buttons
        slides = {drawer: float(inner._target_drawer_pos), drawer + 1: float(inner._target_window_pos)}
    return ObjectGoal(cubes, buttons, slides)


def rewards(goal: Goal, satisfied: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the reward and the not-terminal mask, one byte each, from the satisfied sub-goals of each array."""
    reward = np.sum(satisfied, axis=0, dtype=np.int8) - np.full((), goal.subgoals, np.int8)
    return np.asarray(reward), np.asarray(reward < 0)
