"""Collect OGBench datasets with the oracles of its package.

`navigate`: from a random cell, walk to a random goal along OGBench's oracle sub-goals with Gaussian noise on the
action; when the goal is reached, draw the next one; 1001 rows to a trajectory.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError
from drol.tasks.environments import make_ogbench

ROWS = 1001  # of one trajectory: 1000 transitions and the final observation
NOISE = 0.5  # standard deviation on the action of the point
COLLECTABLE = tuple(f"pointmaze-{maze}-navigate-v0" for maze in ("medium", "large", "giant", "teleport"))


def collect(
    dataset_name: str, path: Path, episodes: int, seed: int, report: Callable[[int, int], None] | None = None
) -> tuple[Path, Path]:
    """Write a dataset of `episodes` trajectories, and a tenth as many more to `<name>-val.npz`, in OGBench's format."""
    if dataset_name not in COLLECTABLE:
        raise InputError(f"cannot collect {dataset_name!r}; it must be one of {', '.join(COLLECTABLE)}")
    if episodes < 1:
        raise InputError(f"episodes is {episodes}; it must be at least 1")
    validation_path = path.with_name(f"{path.stem}-val.npz")
    for target in (path, validation_path):
        if target.exists():
            raise InputError(f"{target} exists already; choose another --out, nothing was written")
    path.parent.mkdir(parents=True, exist_ok=True)
    environment = make_ogbench(dataset_name.replace("-navigate", ""))
    total = episodes + max(1, episodes // 10)
    trajectories = []
    for number in range(total):
        trajectories.append(walk(environment, np.random.SeedSequence((seed, number))))
        if report:
            report(number + 1, total)
    environment.close()
    for target, part in ((path, trajectories[:episodes]), (validation_path, trajectories[episodes:])):
        arrays: dict[str, Any] = {name: np.concatenate([trajectory[name] for trajectory in part]) for name in part[0]}
        partial = target.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez_compressed(file, **arrays)
        partial.rename(target)
    return path, validation_path


def walk(environment: Any, seed: np.random.SeedSequence) -> dict[str, np.ndarray]:
    """One trajectory; it depends on its seed alone, not on those before it."""
    generator = np.random.default_rng(seed)
    np.random.seed(generator.integers(2**32))  # OGBench draws the noise of its mazes from the global generator
    maze = environment.unwrapped
    cells = free_cells(maze.maze_map)
    goals = [cell for cell in cells if not is_hallway(maze.maze_map, *cell)]

    def next_goal() -> tuple[int, int]:
        return goals[generator.integers(len(goals))]

    start = cells[generator.integers(len(cells))]
    task = {"init_ij": start, "goal_ij": next_goal()}
    observation, _ = environment.reset(seed=int(generator.integers(2**31)), options={"task_info": task})
    rows: dict[str, list] = {name: [] for name in ("observations", "actions", "terminals", "qpos", "qvel")}
    for step in range(ROWS):
        position = maze.get_xy()
        subgoal, _ = maze.get_oracle_subgoal(position, maze.cur_goal_xy)
        direction = (subgoal - position) / (np.linalg.norm(subgoal - position) + 1e-6)
        action = np.clip(direction + generator.normal(0, NOISE, 2), -1, 1)
        # The inner environment: the wrapper's time limit of 1000 steps is shorter than a trajectory.
        next_observation, _, _, _, info = maze.step(action)
        for name, value in zip(
            rows, (observation, action, step == ROWS - 1, info["prev_qpos"], info["prev_qvel"]), strict=True
        ):
            rows[name].append(value)
        if info["success"]:
            maze.set_goal(goal_xy=maze.add_noise(maze.ij_to_xy(next_goal())))
        observation = next_observation
    return {name: np.asarray(values, bool if name == "terminals" else np.float32) for name, values in rows.items()}


def free_cells(maze_map: np.ndarray) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(maze_map == 0)]


def is_hallway(maze_map: np.ndarray, row: int, column: int) -> bool:
    """Whether a cell only connects two opposite neighbours."""
    above, below = maze_map[row - 1, column], maze_map[row + 1, column]
    left, right = maze_map[row, column - 1], maze_map[row, column + 1]
    return (above == below == 0 and left == right == 1) or (left == right == 0 and above == below == 1)
