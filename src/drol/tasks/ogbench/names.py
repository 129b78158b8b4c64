"""The names of OGBench's single tasks, and the locations of their data.

This module imports neither jax nor the simulator, so that listing names is fast.
"""

import functools
import math
from dataclasses import dataclass
from pathlib import Path

from drol.errors import InputError, unknown_name
from drol.tasks.ogbench.recipes import COLLECTABLE, RECIPES, estimate_seconds
from drol.tasks.source import DatasetEntry

EMBEDDED = Path(__file__).parents[1] / "embedded"  # datasets shipped with the package
DOWNLOADS = Path("~/.ogbench/data")  # the folder of the ogbench package
EMBEDDED_TRANSITIONS = {"pointmaze-medium-navigate-v0": 100_000}  # fewer than in OGBench's file of this name
IMAGE = (64, 64, 3)


@dataclass(frozen=True)
class EnvironmentRow:
    """A row of the table of OGBench's environments, and of the datasets for them."""

    observation: int
    action: int
    millions: dict[str, int]  # type of data -> millions of transitions; 0: OGBench publishes no file
    visual: bool = True  # whether a version with images exists


# OGBench also registers humanoidmaze-teleport, but it has no data and its model does not compile.
NAVIGATE, EXPLORE = {"navigate": 1, "stitch": 1}, {"navigate": 1, "stitch": 1, "explore": 5}
ENVIRONMENTS = {
    "pointmaze-medium": EnvironmentRow(2, 2, NAVIGATE, visual=False),
    "pointmaze-large": EnvironmentRow(2, 2, NAVIGATE, visual=False),
    "pointmaze-giant": EnvironmentRow(2, 2, NAVIGATE, visual=False),
    "pointmaze-teleport": EnvironmentRow(2, 2, NAVIGATE, visual=False),
    "antmaze-medium": EnvironmentRow(29, 8, EXPLORE),
    "antmaze-large": EnvironmentRow(29, 8, EXPLORE),
    "antmaze-giant": EnvironmentRow(29, 8, NAVIGATE),
    "antmaze-teleport": EnvironmentRow(29, 8, EXPLORE),
    "humanoidmaze-medium": EnvironmentRow(69, 21, {"navigate": 2, "stitch": 2}),
    "humanoidmaze-large": EnvironmentRow(69, 21, {"navigate": 2, "stitch": 2}),
    "humanoidmaze-giant": EnvironmentRow(69, 21, {"navigate": 4, "stitch": 4}),
    "antsoccer-arena": EnvironmentRow(42, 8, NAVIGATE, visual=False),
    "antsoccer-medium": EnvironmentRow(42, 8, {"navigate": 4, "stitch": 4}, visual=False),
    "cube-single": EnvironmentRow(28, 5, {"play": 1, "noisy": 1}),
    "cube-double": EnvironmentRow(37, 5, {"play": 1, "noisy": 1}),
    "cube-triple": EnvironmentRow(46, 5, {"play": 3, "noisy": 3}),
    "cube-quadruple": EnvironmentRow(55, 5, {"play": 5, "noisy": 5}),
    "cube-octuple": EnvironmentRow(91, 5, {"play": 0}, visual=False),
    "scene": EnvironmentRow(40, 5, {"play": 1, "noisy": 1}),
    "puzzle-3x3": EnvironmentRow(55, 5, {"play": 1, "noisy": 1}),
    "puzzle-4x4": EnvironmentRow(83, 5, {"play": 1, "noisy": 1}),
    "puzzle-4x5": EnvironmentRow(99, 5, {"play": 3, "noisy": 3}),
    "puzzle-4x6": EnvironmentRow(115, 5, {"play": 5, "noisy": 5}),
}
TASKS = ("", "-task1", "-task2", "-task3", "-task4", "-task5")  # without a number: OGBench's default task


@dataclass(frozen=True)
class TaskName:
    """The parts of a task's name."""

    environment: str  # key of ENVIRONMENTS
    visual: bool
    data: str
    task: str  # one of TASKS

    @property
    def dataset(self) -> str:
        return f"{'visual-' * self.visual}{self.environment}-{self.data}-v0"

    @property
    def full(self) -> str:
        return f"{'visual-' * self.visual}{self.environment}-{self.data}-singletask{self.task}-v0"

    @property
    def shares_process(self) -> bool:
        """Whether several environments may run in one process; a teleport draws from NumPy's global generator."""
        return not self.visual and "teleport" not in self.environment

    def environment_id(self, visual: bool) -> str:
        """Return the gymnasium id; the versions with and without images have the same goals."""
        return f"{'visual-' * visual}{self.environment}-singletask{self.task}-v0"


@functools.cache
def all_names() -> dict[str, TaskName]:
    """Return the parts of every task's name."""
    return {
        name.full: name
        for visual in (False, True)
        for environment, row in ENVIRONMENTS.items()
        if row.visual or not visual
        for data in row.millions
        for name in (TaskName(environment, visual, data, task) for task in TASKS)
    }


def find_name(task: str) -> TaskName:
    """Return the parts of a task's name."""
    if task not in all_names():
        raise unknown_name("task of OGBench", task, all_names())
    return all_names()[task]


def list_datasets() -> list[DatasetEntry]:
    """Return an entry for every dataset."""
    found: dict[str, list[TaskName]] = {}
    for parts in all_names().values():
        found.setdefault(parts.dataset, []).append(parts)
    return [describe_dataset(dataset, tasks) for dataset, tasks in found.items()]


def describe_dataset(dataset: str, tasks: list[TaskName]) -> DatasetEntry:
    row = ENVIRONMENTS[tasks[0].environment]
    published = row.millions[tasks[0].data] * 1_000_000
    embedded = (EMBEDDED / f"{dataset}.npz").is_file()
    transitions = EMBEDDED_TRANSITIONS.get(dataset) if embedded else published
    shape = IMAGE if tasks[0].visual else (row.observation,)
    return DatasetEntry(
        name=dataset,
        tasks=tuple(parts.full for parts in tasks),
        transitions=transitions or None,
        observation="x".join(map(str, shape)),
        action=row.action,
        memory=transitions * row_bytes(shape, row.action) if transitions else None,
        files=file_names(dataset),
        folder=EMBEDDED if embedded else download_folder(),
        ways=(
            *(("embedded",) if embedded else ()),
            *(("download",) if published else ()),
            *(("collect",) if dataset in COLLECTABLE else ()),
            "--dataset",
        ),
    )


def row_bytes(observation: tuple[int, ...], action: int) -> int:
    """Return the bytes of a loaded transition: uint8 images or float32 vectors, and 13 bytes for reward and ends."""
    return math.prod(observation) * (1 if len(observation) > 1 else 4) + 4 * action + 13


def file_names(dataset: str) -> tuple[str, str]:
    return f"{dataset}.npz", f"{dataset}-val.npz"


def download_folder() -> Path:
    return DOWNLOADS.expanduser()


def find_dataset(name: TaskName) -> Path:
    """Return the training file of a task; if it is missing, raise `InputError` that explains how to get it."""
    for folder in (EMBEDDED, download_folder()):
        path = folder / file_names(name.dataset)[0]
        if path.is_file():
            return path
    ways = ["name a file with --dataset"]
    if name.dataset in COLLECTABLE:
        ways.insert(0, f"make one with {describe_collection(name.dataset)}")
    if ENVIRONMENTS[name.environment].millions[name.data]:
        ways.insert(0, f"fetch it with `drol data download {name.dataset}`")
    raise InputError(f"the dataset {path} is not there; {', or '.join(ways)}")


def describe_collection(dataset: str) -> str:
    """Return the command that collects a dataset, with its time on one core if it was measured."""
    from drol.progress import duration  # here, so that listing names is fast

    expert = " --expert FOLDER" if RECIPES[dataset].needs_expert else ""
    seconds = estimate_seconds(dataset)
    time = f" (about {duration(round(seconds, -1))} on one core)" if seconds else ""
    return f"`drol data collect {dataset}{expert}`{time}"
