"""OGBench's single tasks by their official names: which there are, where their data is and how it can be got.

Nothing here imports jax or the simulator, so names are listed at once; `ogbench_loading` does the rest.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drol.errors import InputError
from drol.tasks.catalogue import DatasetEntry
from drol.tasks.ogbench.collecting.recipes import COLLECTABLE

if TYPE_CHECKING:
    from drol.tasks.base import Task

EMBEDDED = Path(__file__).parents[1] / "embedded"  # datasets shipped with the package
DOWNLOADS = Path("~/.ogbench/data")  # where the ogbench package keeps its files
EMBEDDED_TRANSITIONS = {"pointmaze-medium-navigate-v0": 100_000}  # fewer than OGBench's file of that name has
IMAGE = (64, 64, 3)


@dataclass(frozen=True)
class Environment:
    """A simulator and the datasets of OGBench for it."""

    observation: int
    action: int
    millions: dict[str, int]  # kind of data -> millions of transitions; 0: OGBench publishes no file
    visual: bool = True  # whether there is a version with images


# OGBench also registers humanoidmaze-teleport, for which it has no data and whose model does not compile.
NAVIGATE, EXPLORE = {"navigate": 1, "stitch": 1}, {"navigate": 1, "stitch": 1, "explore": 5}
ENVIRONMENTS = {
    "pointmaze-medium": Environment(2, 2, NAVIGATE, visual=False),
    "pointmaze-large": Environment(2, 2, NAVIGATE, visual=False),
    "pointmaze-giant": Environment(2, 2, NAVIGATE, visual=False),
    "pointmaze-teleport": Environment(2, 2, NAVIGATE, visual=False),
    "antmaze-medium": Environment(29, 8, EXPLORE),
    "antmaze-large": Environment(29, 8, EXPLORE),
    "antmaze-giant": Environment(29, 8, NAVIGATE),
    "antmaze-teleport": Environment(29, 8, EXPLORE),
    "humanoidmaze-medium": Environment(69, 21, {"navigate": 2, "stitch": 2}),
    "humanoidmaze-large": Environment(69, 21, {"navigate": 2, "stitch": 2}),
    "humanoidmaze-giant": Environment(69, 21, {"navigate": 4, "stitch": 4}),
    "antsoccer-arena": Environment(42, 8, NAVIGATE, visual=False),
    "antsoccer-medium": Environment(42, 8, {"navigate": 4, "stitch": 4}, visual=False),
    "cube-single": Environment(28, 5, {"play": 1, "noisy": 1}),
    "cube-double": Environment(37, 5, {"play": 1, "noisy": 1}),
    "cube-triple": Environment(46, 5, {"play": 3, "noisy": 3}),
    "cube-quadruple": Environment(55, 5, {"play": 5, "noisy": 5}),
    "cube-octuple": Environment(91, 5, {"play": 0}, visual=False),
    "scene": Environment(40, 5, {"play": 1, "noisy": 1}),
    "puzzle-3x3": Environment(55, 5, {"play": 1, "noisy": 1}),
    "puzzle-4x4": Environment(83, 5, {"play": 1, "noisy": 1}),
    "puzzle-4x5": Environment(99, 5, {"play": 3, "noisy": 3}),
    "puzzle-4x6": Environment(115, 5, {"play": 5, "noisy": 5}),
}
TASKS = ("", "-task1", "-task2", "-task3", "-task4", "-task5")  # without a number: OGBench's default task


@dataclass(frozen=True)
class Name:
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

    def environment_id(self, visual: bool) -> str:
        """As gymnasium knows it; the version with images has the same goals as that without."""
        return f"{'visual-' * visual}{self.environment}-singletask{self.task}-v0"


def all_names() -> dict[str, Name]:
    return {
        name.full: name
        for visual in (False, True)
        for environment, entry in ENVIRONMENTS.items()
        if entry.visual or not visual
        for data in entry.millions
        for name in (Name(environment, visual, data, task) for task in TASKS)
    }


def task_names() -> list[str]:
    return list(all_names())


def load(name: str, dataset_path: Path | None = None) -> "Task":
    from drol.tasks.ogbench.loading import load_single_task

    parts = all_names()[name]
    return load_single_task(parts, dataset_path or find_dataset(parts))


def datasets() -> list[DatasetEntry]:
    """Every dataset, with whether it is here and how it can be got."""
    found: dict[str, list[Name]] = {}
    for parts in all_names().values():
        found.setdefault(parts.dataset, []).append(parts)
    entries = []
    for dataset, tasks in found.items():
        environment = ENVIRONMENTS[tasks[0].environment]
        published = environment.millions[tasks[0].data] * 1_000_000
        embedded = (EMBEDDED / f"{dataset}.npz").is_file()
        transitions = EMBEDDED_TRANSITIONS.get(dataset) if embedded else published
        shape = IMAGE if tasks[0].visual else (environment.observation,)
        ways = (
            *(("embedded",) if embedded else ()),
            *(("download",) if published else ()),
            *(("collect",) if dataset in COLLECTABLE else ()),
            "--dataset",
        )
        entries.append(
            DatasetEntry(
                name=dataset,
                tasks=tuple(parts.full for parts in tasks),
                transitions=transitions or None,
                observation="x".join(map(str, shape)),
                action=environment.action,
                memory=transitions * row_bytes(shape, environment.action) if transitions else None,
                files=file_names(dataset),
                folder=EMBEDDED if embedded else download_folder(),
                ways=ways,
            )
        )
    return entries


def row_bytes(observation: tuple[int, ...], action: int) -> int:
    """What a loaded transition takes: images are bytes, the rest is float32, and 13 bytes are reward and ends."""
    values = 1
    for size in observation:
        values *= size
    return values * (1 if len(observation) > 1 else 4) + 4 * action + 13


def file_names(dataset: str) -> tuple[str, str]:
    return f"{dataset}.npz", f"{dataset}-val.npz"


def download_folder() -> Path:
    return DOWNLOADS.expanduser()


def file_addresses(file_name: str) -> list[str]:
    """Where the installed ogbench package would fetch a file."""
    try:
        from ogbench.utils import DATASET_URL
    except ImportError as error:
        raise InputError(f"OGBench is not installed ({error}); run pip install 'drol[ogbench]'") from error
    return [f"{DATASET_URL}/{file_name}"]


def check_file(path: Path) -> None:
    """Refuse a file that is not a whole dataset of OGBench."""
    from drol.data.files.npz import check_npz

    check_npz(path, ("observations", "actions", "terminals"))


def find_dataset(name: Name) -> Path:
    """The training file of a task; if it is not here, the error says how it can be got."""
    for folder in (EMBEDDED, download_folder()):
        path = folder / file_names(name.dataset)[0]
        if path.is_file():
            return path
    ways = ["name a file with --dataset"]
    if name.dataset in COLLECTABLE:
        ways.insert(0, f"make one with `drol data collect {name.dataset}`")
    if ENVIRONMENTS[name.environment].millions[name.data]:
        ways.insert(0, f"fetch it with `drol data download {name.dataset}`")
    raise InputError(f"the dataset {path} is not there; {', or '.join(ways)}")
