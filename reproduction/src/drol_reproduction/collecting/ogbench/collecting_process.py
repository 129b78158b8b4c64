"""The worker process that collects trajectories. It does not import jax, and it ends with its parent."""

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

from drol.tasks.ogbench.recipes import Recipe
from drol_reproduction.collecting.ogbench.unfinished import UnfinishedCollection
from drol_reproduction.experts.expert import Expert

Arrays = dict[str, np.ndarray]


class Collected(NamedTuple):
    """A trajectory that was written to disk."""

    number: int
    rows: int


class Failed(NamedTuple):
    """A trajectory that could not be collected, and the reason."""

    number: int
    reason: str


class Collector:
    """Collects trajectories of one dataset to a folder; makes its environment for the first trajectory."""

    def __init__(self, recipe: Recipe, experts: tuple[Expert, ...], seed: int, folder: Path):
        self.recipe, self.experts, self.seed = recipe, experts, seed
        self.unfinished = UnfinishedCollection(folder)

    @functools.cached_property
    def play(self) -> Callable[[np.random.SeedSequence], Arrays]:
        return prepare(self.recipe, self.experts)

    def collect(self, number: int) -> Collected:
        """Play an episode and write its trajectory."""
        trajectory = self.play(np.random.SeedSequence((self.seed, number)))
        self.unfinished.write(number, trajectory)
        return Collected(number, len(trajectory["terminals"]))


def serve(connection: Connection, recipe: Recipe, experts: tuple[Expert, ...], seed: int, folder: Path) -> None:
    """Collect the trajectories whose numbers are received, until the parent closes the connection."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    if sys.platform == "linux":
        # mujoco reads this when it is imported: render without a screen, or disable rendering.
        os.environ.setdefault("MUJOCO_GL", "egl" if recipe.visual else "disable")
    collector = Collector(recipe, experts, seed, folder)
    while True:
        try:
            number = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = collector.collect(number)
        except Exception as error:
            answer = Failed(number, f"{type(error).__name__}: {error}")
        connection.send(answer)


def prepare(recipe: Recipe, experts: tuple[Expert, ...] = ()) -> Callable[[np.random.SeedSequence], Arrays]:
    """Make the environment and return a function from a seed to a trajectory."""
    from drol.tasks.ogbench.environment import make_ogbench
    from drol_reproduction.collecting.ogbench.manipulation import make_table, play_table
    from drol_reproduction.collecting.ogbench.mazes import play_maze

    environment = make_table(recipe) if recipe.body == "arm" else make_ogbench(recipe.environment)

    def collect_one(seed: np.random.SeedSequence) -> Arrays:
        if recipe.body == "arm":
            return play_table(environment, seed, recipe)
        return play_maze(environment, seed, recipe, experts[0] if experts else None)

    return collect_one


def end_with_parent() -> None:
    """End this process when its parent has ended, since a killed parent cannot stop its children."""
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)
