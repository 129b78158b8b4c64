"""Load an OGBench file for the goal of a task, with the transitions, rewards and ends of OGBench's own loader.

Only success ends the task. At the end of a trajectory the task is not over, and the next state is bootstrapped.
"""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drol.data.dataset import Dataset
from drol.data.images import CROP_PROBABILITY, FRAME_STACK
from drol.data.readers.npz import read_npz
from drol.errors import InputError
from drol.tasks.base import Maze, Task, success_rate
from drol.tasks.ogbench.environment import MODULES, SUCCESS_TIMINGS, make_ogbench
from drol.tasks.ogbench.names import IMAGE, TaskName
from drol.tasks.ogbench.rewards import Goal, read_goal, rewards


class TaskFacts(NamedTuple):
    """Facts about a task's data that are read from its environment."""

    goal: Goal
    shapes: dict[str, tuple[int, ...]]  # the shape of one row of each array
    maze: Maze | None


def load_single_task(name: TaskName, path: Path) -> Task:
    """Load a task from a file, and from the validation file in the same folder if it exists."""
    facts = read_task_facts(name)
    validation_path = path.with_name(f"{path.stem}-val.npz")
    return Task(
        name=name.full,
        train=read_dataset(path, facts.goal, facts.shapes),
        validation=read_dataset(validation_path, facts.goal, facts.shapes) if validation_path.is_file() else None,
        make_environment=environment_maker(name),
        success_timing="before",
        timed_environments={timing: environment_maker(name, timing) for timing in SUCCESS_TIMINGS},
        stacks_frames=name.visual,
        score=success_rate,
        score_name="success (%)",
        maze=facts.maze,
        environment_modules=MODULES,
        shares_process=name.shares_process,
    )


def environment_maker(name: TaskName, success_timing: str = "before") -> Callable[[], Any]:
    """Return a function that makes the environment of a task."""
    frames = FRAME_STACK if name.visual else 1
    return functools.partial(
        make_ogbench, name.environment_id(name.visual), frame_stack=frames, success_timing=success_timing
    )


def read_task_facts(name: TaskName) -> TaskFacts:
    """Read the goal, shapes and maze of a task from its environment; a visual task needs no rendering for this."""
    environment = make_ogbench(name.environment_id(visual=False))
    has_maze = "maze" in name.environment and not name.visual
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium warns about the spaces of tables
        environment.reset(seed=0)
        shapes = stored_shapes(environment, name.visual)
    facts = TaskFacts(read_goal(environment), shapes, read_maze(environment) if has_maze else None)
    environment.close()
    return facts


def stored_shapes(environment: Any, visual: bool) -> dict[str, tuple[int, ...]]:
    """Return the shape of one row of each array in a file for this environment."""
    inner = environment.unwrapped
    model = inner.model if hasattr(inner, "model") else inner._model
    return {
        "observations": IMAGE if visual else environment.observation_space.shape,
        "actions": environment.action_space.shape,
        "terminals": (),
        "qpos": (model.nq,),
        "button_states": (getattr(inner, "_num_buttons", 0),),
    }


def read_maze(environment: Any) -> Maze:
    """Read the map, start and goal of a single-task maze after a reset."""
    inner = environment.unwrapped
    info = inner.cur_task_info
    return Maze(
        walls=np.asarray(inner.maze_map) == 1,
        unit=float(inner._maze_unit),
        offset=(float(inner._offset_x), float(inner._offset_y)),
        start=(float(info["init_xy"][0]), float(info["init_xy"][1])),
        goal=(float(info["goal_xy"][0]), float(info["goal_xy"][1])),
        goal_radius=float(inner._goal_tol),
    )


def read_dataset(path: Path, goal: Goal, shapes: dict[str, tuple[int, ...]]) -> Dataset:
    """Read the trajectories of a file with the rewards of a goal.

    Each simulator state is reduced to its number of satisfied sub-goals while it is read.
    """
    is_image = len(shapes["observations"]) > 1

    def change(name: str, rows: np.ndarray) -> np.ndarray:
        if rows.shape[1:] != shapes[name]:
            raise InputError(f"a row of {name!r} has shape {rows.shape[1:]}; in this task it has {shapes[name]}")
        if name in goal.arrays:
            return goal.satisfied(name, rows)
        if name == "terminals":
            return rows.astype(bool)
        return rows.astype(np.uint8 if name == "observations" and is_image else np.float32, copy=False)

    required = ("observations", "actions", "terminals", *goal.arrays)
    arrays = read_npz(path, required, transforms={name: functools.partial(change, name) for name in required})
    reward, continues = rewards(goal, [arrays.pop(name) for name in goal.arrays])
    try:
        return Dataset.from_rows(
            observation=arrays["observations"],
            action=arrays["actions"],
            reward=reward,
            continues=continues,
            last=arrays["terminals"],
            frame_stack=FRAME_STACK if is_image else 1,
            crop_probability=CROP_PROBABILITY if is_image else 0.0,
            overwrite=True,
        )
    except InputError as error:
        raise InputError(f"dataset file {path}: {error}") from error
