"""The process that collects trajectories, one after another. It imports no jax and ends with its parent."""

import functools
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drol.tasks.collect_files import Parts
from drol.tasks.collect_recipes import Recipe
from drol.tasks.experts import Expert


class Collected(NamedTuple):
    """A trajectory that is on disk."""

    number: int
    rows: int


class Failed(NamedTuple):
    """A trajectory that cannot be collected, and why."""

    number: int
    reason: str


def serve(connection: Connection, recipe: Recipe, experts: tuple[Expert, ...], seed: int, folder: Path) -> None:
    """Collect the trajectories whose numbers arrive, until the other side closes the connection."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    collect_one = None
    while True:
        try:
            number = connection.recv()
        except (EOFError, OSError):
            return
        try:
            collect_one = collect_one or prepare(recipe, experts)
            trajectory = collect_one(np.random.SeedSequence((seed, number)))
            Parts(folder).write(number, trajectory)
            answer = Collected(number, len(trajectory["terminals"]))
        except Exception as error:
            answer = Failed(number, f"{type(error).__name__}: {error}")
        connection.send(answer)


def prepare(
    recipe: Recipe, experts: tuple[Expert, ...] = ()
) -> Callable[[np.random.SeedSequence], dict[str, np.ndarray]]:
    """Make the environment; a function from a seed to a trajectory."""
    if (
        sys.platform == "linux"
    ):  # read when mujoco is imported: pictures without a screen, or none and no search for one
        os.environ.setdefault("MUJOCO_GL", "egl" if recipe.visual else "disable")
    from drol.tasks import collect_manipulation, collect_mazes, collect_soccer
    from drol.tasks.environments import make_ogbench

    if recipe.body == "arm":
        return functools.partial(call, collect_manipulation.play, collect_manipulation.make_table(recipe), (recipe,))
    environment = make_ogbench(recipe.environment)
    if recipe.body == "soccer":
        dribblers = [expert for expert in experts if expert.input == "ogbench-ball"]
        walkers = [expert for expert in experts if expert.input != "ogbench-ball"]
        pair = (walkers[0], dribblers[0] if dribblers else None)
        return functools.partial(call, collect_soccer.play_soccer, environment, (recipe, *pair))
    return functools.partial(call, collect_mazes.walk, environment, (recipe, *experts))


def call(function: Callable, environment: object, settings: tuple, seed: np.random.SeedSequence) -> dict:
    return function(environment, seed, *settings)


def end_with_parent() -> None:
    """A parent that was killed cannot tell its children."""
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)
