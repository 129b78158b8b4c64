"""Collect files like D4RL's with the policies that D4RL used, if the user has their weights (see experts.py).

The policies are hand_dapg's experts for `<task>-expert`, and D4RL's ant for antmaze.
"""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drol.data.readers.hdf5 import write_hdf5
from drol.errors import InputError
from drol.tasks.d4rl.environments import GOAL_CELLS, GOAL_RADIUS, MAPS, UNIT, cell_centre, make_adroit, make_antmaze
from drol.tasks.d4rl.hdf5_rows import RowRecorder, count_transitions
from drol.tasks.d4rl.names import ANTMAZE_FILES, COLLECTABLE, SIZES
from drol_reproduction.collecting.collected import record_path, write_record
from drol_reproduction.experts.expert import Expert, read_expert

if TYPE_CHECKING:
    from drol.progress import Report

Cell = tuple[int, int]
PACKAGES = ("gymnasium", "mujoco", "numpy")  # packages whose versions may change the arrays
EPISODES = {"antmaze": 1000, "hand": 5000}  # the numbers of trajectories in D4RL's files
ANT_ROWS = 1001  # rows of one trajectory of an ant
ANT_NOISE = 0.2  # standard deviation of the noise on its actions
PLAY_GOALS = {  # hand-picked goal cells of the `play` datasets
    "medium": [(2, 6), (5, 1), (6, 5)],
    "large": [(1, 6), (3, 5), (3, 10), (5, 2), (7, 4), (7, 6), (7, 9)],
}


def action_towards(
    walker: Expert, observation: np.ndarray, target: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Return the action of an ant that should go to a target, with the noise of D4RL's ants."""
    heading = target - observation[:2]
    mean = walker.walking_action(observation, heading / (np.linalg.norm(heading) + 1e-6))
    return np.clip(mean + ANT_NOISE * generator.normal(size=mean.shape), -1, 1)


class Guide:
    """Guides an ant along a shortest path: to the next cell, and to the goal itself once its cell is next."""

    def __init__(self, lines: Sequence[str], goal: np.ndarray):
        self.cells = free_cells(lines)
        self.centres = np.asarray([cell_centre(cell) for cell in self.cells])  # [cells, 2]
        self.goal = goal
        self.goal_cell = self.nearest_cell(goal)
        self.steps_left = {self.goal_cell: 0}
        frontier = [self.goal_cell]
        for cell in frontier:  # the loop appends to the list
            for neighbour in neighbours(cell):
                if neighbour in self.cells and neighbour not in self.steps_left:
                    self.steps_left[neighbour] = self.steps_left[cell] + 1
                    frontier.append(neighbour)

    def nearest_cell(self, position: np.ndarray) -> Cell:
        """Return the free cell whose centre is nearest to a position."""
        return self.cells[int(np.argmin(np.sum((self.centres - position) ** 2, axis=-1)))]

    def target(self, position: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return the point to go to from a position."""
        cell = self.nearest_cell(position)
        ahead = min(neighbours(cell), key=lambda each: self.steps_left.get(each, np.inf))
        if self.goal_cell in (cell, ahead):
            return self.goal
        return cell_centre(ahead) + generator.uniform(0, UNIT / 4, 2)


def neighbours(cell: Cell) -> list[Cell]:
    row, column = cell
    return [(row, column - 1), (row, column + 1), (row + 1, column), (row - 1, column)]


def free_cells(lines: Sequence[str]) -> list[Cell]:
    return [(row, column) for row, line in enumerate(lines) for column, mark in enumerate(line) if mark == "."]


def collect_hand(
    hand_task: str, expert: Expert, episodes: int, seed: int, report: "Report | None" = None
) -> dict[str, np.ndarray]:
    """Play episodes and return the rows of `<hand_task>-expert-v1`.

    Actions are sampled. A dropped pen is a terminal, and the horizon is a timeout.
    """
    environment = make_adroit(hand_task)
    rows = RowRecorder()
    for number in range(episodes):
        generator = np.random.default_rng((seed, number))
        observation, _ = environment.reset(seed=int(generator.integers(2**31)))
        ended = False
        while not ended:
            action = np.clip(expert.draw(observation, generator), -1, 1)
            following, reward, terminated, truncated, _ = environment.step(action)
            rows.add(observation, action, reward, terminated and not truncated, truncated)
            observation, ended = following, terminated or truncated
        if report:
            report(number + 1, episodes, f"{rows.count:,} rows")
    environment.close()
    return rows.arrays()


def collect_antmaze(
    name: str, walker: Expert, episodes: int, seed: int, report: "Report | None" = None
) -> dict[str, np.ndarray]:
    """Play episodes and return the rows of an antmaze task.

    The ant goes to goals chosen by the type of the dataset. It is rewarded where it passes the goal of the task.
    """
    _, maze, kind, *_ = name.split("-")
    lines, cells = MAPS[maze], free_cells(MAPS[maze])
    environment = make_antmaze(maze).env
    environment.reset(seed=seed)
    goal = environment.goal  # sampled once for the whole file, as in D4RL's relabelled files
    goals = {"play": PLAY_GOALS.get(maze), "diverse": cells}.get(kind) or [GOAL_CELLS[maze]]
    rows = RowRecorder()
    for number in range(episodes):
        generator = np.random.default_rng((seed, number))
        observation, _ = environment.reset(seed=int(generator.integers(2**31)))
        if kind in ("play", "diverse"):
            start = cells[generator.integers(len(cells))]
            environment.unwrapped.set_xy(cell_centre(start) + generator.uniform(0, 1, 2))
            observation = environment.unwrapped.get_ob()
        guide = Guide(lines, cell_centre(goals[generator.integers(len(goals))]) + generator.uniform(0, 1, 2))
        for step in range(ANT_ROWS):
            action = action_towards(walker, observation, guide.target(observation[:2], generator), generator)
            following = environment.step(action)[0]
            rows.add(observation, action, 0.0, False, step == ANT_ROWS - 1)
            observation = following
        if report:
            report(number + 1, episodes, f"{rows.count:,} rows")
    environment.close()
    arrays = rows.arrays()
    reached = np.linalg.norm(arrays["observations"][1:, :2] - goal, axis=-1) <= GOAL_RADIUS
    arrays["terminals"] = np.append(reached, False)
    arrays["rewards"] = arrays["terminals"].astype(np.float32)
    return arrays


def collect(
    name: str,
    path: Path,
    experts: Sequence[Path] = (),
    episodes: int | None = None,
    seed: int = 0,
    processes: int | None = None,
    report: "Report | None" = None,
) -> dict[Path, int]:
    """Collect a file for a task with the given expert; `TaskSource.collect` explains the arguments."""
    if name not in COLLECTABLE:
        raise InputError(
            f"cannot collect {name!r}; the D4RL datasets that can be collected are: {', '.join(COLLECTABLE)}"
        )
    if processes not in (None, 1):
        raise InputError(f"processes is {processes}; {name} is collected in one, leave it out")
    kind = name.split("-")[0]
    episodes = EPISODES.get(kind, EPISODES["hand"]) if episodes is None else episodes
    for setting, value, least in (("episodes", episodes, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{setting} is {value}; it must be at least {least}")
    if path.suffix not in (".hdf5", ".h5"):
        raise InputError(f"the file to write is {path}; its name must end with .hdf5")
    for target in (path, record_path(path)):
        if target.exists():
            raise InputError(f"{target} exists already; choose another --out, nothing was written")
    expert = find_expert(name, experts)
    if report:
        report(0, episodes, "")
    if name in ANTMAZE_FILES:
        rows = collect_antmaze(name, expert, episodes, seed, report)
    else:
        rows = collect_hand(kind, expert, episodes, seed, report)
    write_hdf5(path, rows)
    written = {path: count_transitions(rows["timeouts"])}
    packages = (*PACKAGES, "ogbench" if name in ANTMAZE_FILES else "gymnasium-robotics")
    versions = {package: importlib.metadata.version(package) for package in packages}
    recipe = {"noise": ANT_NOISE, "rows": ANT_ROWS} if name in ANTMAZE_FILES else {}
    write_record(name, written, recipe=recipe, episodes=episodes, seed=seed, experts=experts, versions=versions)
    return written


def find_expert(name: str, experts: Sequence[Path]) -> Expert:
    """Read the expert policy; raise `InputError` unless there is exactly one and it fits the task."""
    input, what = ("ogbench-direction", "a walking ant") if name in ANTMAZE_FILES else ("observation", "a trained hand")
    if len(experts) != 1:
        raise InputError(
            f"{len(experts)} experts were given; {name} is collected with one policy of {what}: --expert FOLDER; "
            "`drol data expert --help` makes one from a file of weights"
        )
    expert = read_expert(experts[0])
    sizes = SIZES[name.split("-")[0]]
    if expert.input != input or (expert.input_size, expert.action_size) != sizes:
        raise InputError(
            f"the expert {experts[0]} has input {expert.input}, takes {expert.input_size} numbers and answers with "
            f"{expert.action_size}; {name} needs input {input}, {sizes[0]} and {sizes[1]}"
        )
    return expert
