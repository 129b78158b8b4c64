"""Make files like D4RL's: with the policies that made D4RL's own, where one has their weights as npz files.

hand_dapg's experts for `<task>-expert`, its demonstrations of the door for `door-human`, D4RL's ant for antmaze.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.arrays import read_npz
from drol.data.hdf5 import write_hdf5
from drol.errors import InputError
from drol.tasks.d4rl import DATASET_URLS
from drol.tasks.d4rl_environments import GOAL_CELLS, GOAL_RADIUS, MAPS, UNIT, cell_centre, make_adroit, make_antmaze

Cell = tuple[int, int]
Report = Callable[[int, int], None]
WALK_ROWS = 1001  # of one walk through a maze
WALK_NOISE = 0.2  # standard deviation on the actions of the ant
PLAY_GOALS = {  # hand-picked cells that the walks of `play` head for
    "medium": [(2, 6), (5, 1), (6, 5)],
    "large": [(1, 6), (3, 5), (3, 10), (5, 2), (7, 4), (7, 6), (7, 9)],
}


class HandExpert:
    """A DAPG policy: a Gaussian about a tanh network."""

    def __init__(self, path: Path):
        layers = [f"layers/{number}/{part}" for number in range(3) for part in ("kernel", "bias")]
        self.weights = read_npz(path, (*layers, "in_shift", "in_scale", "out_shift", "out_scale", "log_std"))

    def act(self, observation: np.ndarray, generator: np.random.Generator | None = None) -> np.ndarray:
        """A drawn action as D4RL collected; without a generator, the mean."""
        weights = self.weights
        hidden = (observation - weights["in_shift"]) / (weights["in_scale"] + 1e-8)
        for number in range(2):
            hidden = np.tanh(hidden @ weights[f"layers/{number}/kernel"] + weights[f"layers/{number}/bias"])
        mean = hidden @ weights["layers/2/kernel"] + weights["layers/2/bias"]
        action = mean * weights["out_scale"] + weights["out_shift"]
        if generator is not None:
            action = action + np.exp(weights["log_std"]) * generator.normal(size=action.shape)
        return np.clip(action, -1, 1)


class AntWalker:
    """D4RL's ant, which walks in the direction that it is given."""

    def __init__(self, path: Path):
        layers = [f"{layer}/{part}" for layer in ("layers/0", "layers/1", "mean") for part in ("kernel", "bias")]
        self.weights = read_npz(path, layers)

    def act(self, observation: np.ndarray, target: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        weights = self.weights
        heading = target - observation[:2]
        hidden = np.concatenate([observation[2:], 10 * heading / (np.linalg.norm(heading) + 1e-6)])
        for layer in ("layers/0", "layers/1"):
            hidden = np.maximum(hidden @ weights[f"{layer}/kernel"] + weights[f"{layer}/bias"], 0)
        mean = np.tanh(hidden @ weights["mean/kernel"] + weights["mean/bias"])
        return np.clip(mean + WALK_NOISE * generator.normal(size=mean.shape), -1, 1)


class Guide:
    """The way through a maze to a goal: the next cell of a shortest path, and the goal itself once it is next."""

    def __init__(self, lines: Sequence[str], goal: np.ndarray):
        self.cells = free_cells(lines)
        self.centres = np.asarray([cell_centre(cell) for cell in self.cells])  # [cells, 2]
        self.goal = goal
        self.goal_cell = self.nearest_cell(goal)
        self.steps_left = {self.goal_cell: 0}
        frontier = [self.goal_cell]
        for cell in frontier:  # grows while it is walked through
            for neighbour in neighbours(cell):
                if neighbour in self.cells and neighbour not in self.steps_left:
                    self.steps_left[neighbour] = self.steps_left[cell] + 1
                    frontier.append(neighbour)

    def nearest_cell(self, position: np.ndarray) -> Cell:
        return self.cells[int(np.argmin(np.sum((self.centres - position) ** 2, axis=-1)))]

    def target(self, position: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Where to head from a position."""
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


def collect_expert(
    hand_task: str, expert: HandExpert, episodes: int, seed: int, report: Report | None = None
) -> dict[str, np.ndarray]:
    """Rows of `<hand_task>-expert-v1`: drawn actions, terminals where the pen drops, timeouts at the horizon."""
    environment = make_adroit(hand_task)
    rows = Rows()
    for number in range(episodes):
        generator = np.random.default_rng((seed, number))
        observation, _ = environment.reset(seed=int(generator.integers(2**31)))
        ended = False
        while not ended:
            action = expert.act(observation, generator)
            following, reward, terminated, truncated, _ = environment.step(action)
            rows.add(observation, action, reward, terminated and not truncated, truncated)
            observation, ended = following, terminated or truncated
        if report:
            report(number + 1, episodes)
    environment.close()
    return rows.arrays()


def replay_door(demonstrations: Path) -> dict[str, np.ndarray]:
    """Rows of `door-human-v1`: the demonstrated actions, clipped, from the demonstrated initial states."""
    states = [f"initial_state/{name}" for name in ("qpos", "qvel", "door_body_pos")]
    recorded = read_npz(demonstrations, ("actions", "terminals", *states))
    environment = make_adroit("door").env  # without the horizon: demonstrations are longer
    rows = Rows()
    starts = np.flatnonzero(np.concatenate([[True], recorded["terminals"][:-1]]))
    for number, (first, end) in enumerate(zip(starts, [*starts[1:], len(recorded["actions"])], strict=True)):
        state = {name.split("/")[1]: recorded[name][number] for name in states}
        observation, _ = environment.reset(seed=0, options={"initial_state_dict": state})
        for row in range(first, end):
            action = np.clip(recorded["actions"][row], -1, 1)
            following, reward, _, _, _ = environment.step(action)
            rows.add(observation, action, reward, False, row == end - 1)
            observation = following
    environment.close()
    return rows.arrays()


def collect_antmaze(
    name: str, walker: AntWalker, walks: int, seed: int, report: Report | None = None
) -> dict[str, np.ndarray]:
    """Rows of an antmaze task: walks to goals of the dataset's kind, rewarded where they pass the task's own goal."""
    _, maze, kind, *_ = name.split("-")
    lines, cells = MAPS[maze], free_cells(MAPS[maze])
    environment = make_antmaze(maze).env
    environment.reset(seed=seed)
    goal = environment.goal  # one draw of the task's goal, as D4RL relabelled its files
    goals = {"play": PLAY_GOALS.get(maze), "diverse": cells}.get(kind) or [GOAL_CELLS[maze]]
    rows = Rows()
    for number in range(walks):
        generator = np.random.default_rng((seed, number))
        observation, _ = environment.reset(seed=int(generator.integers(2**31)))
        if kind in ("play", "diverse"):
            start = cells[generator.integers(len(cells))]
            environment.unwrapped.set_xy(cell_centre(start) + generator.uniform(0, 1, 2))
            observation = environment.unwrapped.get_ob()
        guide = Guide(lines, cell_centre(goals[generator.integers(len(goals))]) + generator.uniform(0, 1, 2))
        for step in range(WALK_ROWS):
            action = walker.act(observation, guide.target(observation[:2], generator), generator)
            following = environment.step(action)[0]
            rows.add(observation, action, 0.0, False, step == WALK_ROWS - 1)
            observation = following
        if report:
            report(number + 1, walks)
    environment.close()
    arrays = rows.arrays()
    reached = np.linalg.norm(arrays["observations"][1:, :2] - goal, axis=-1) <= GOAL_RADIUS
    arrays["terminals"] = np.append(reached, False)
    arrays["rewards"] = arrays["terminals"].astype(np.float32)
    return arrays


class Rows:
    """The rows of a D4RL file while they are collected."""

    def __init__(self):
        self.lists: dict[str, list[Any]] = {
            name: [] for name in ("observations", "actions", "rewards", "terminals", "timeouts")
        }

    def add(self, observation: np.ndarray, action: np.ndarray, reward: float, terminal: bool, timeout: bool) -> None:
        for values, value in zip(self.lists.values(), (observation, action, reward, terminal, timeout), strict=True):
            values.append(np.asarray(value, bool if isinstance(value, (bool, np.bool_)) else np.float32))

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(values) for name, values in self.lists.items()}


def collect(name: str, path: Path, weights: Path, episodes: int, seed: int = 0, report: Report | None = None) -> Path:
    """Write a file for a task, with the policy (for door-human: the demonstrations) in an npz file of its weights."""
    kind = name.split("-")[0]
    if name not in DATASET_URLS or (kind != "antmaze" and "expert" not in name and name != "door-human-v1"):
        raise InputError(f"cannot collect {name!r}; it must be an antmaze or expert task of D4RL, or door-human-v1")
    if episodes < 1:
        raise InputError(f"episodes is {episodes}; it must be at least 1")
    if path.exists():
        raise InputError(f"{path} exists already; choose another name, nothing was written")
    if kind == "antmaze":
        rows = collect_antmaze(name, AntWalker(weights), episodes, seed, report)
    elif name == "door-human-v1":
        rows = replay_door(weights)
    else:
        rows = collect_expert(kind, HandExpert(weights), episodes, seed, report)
    write_hdf5(path, rows)
    return path
