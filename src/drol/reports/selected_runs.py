"""Select and label the runs of a page, and load their tasks once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from drol.errors import InputError
from drol.results.collect import stand_in
from drol.results.groups import make_labels
from drol.runs.config_file import CONFIG
from drol.runs.run import Run, open_run
from drol.tasks.base import Task

DRAWN_RUNS = 6  # most runs whose episodes and actions are drawn: the first of each group
TASK_SETTINGS = ("task", "dataset", "success_timing", "frame_stack", "crop_probability")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Shown:
    """A run on a page, with the label of its group."""

    run: Run
    label: str


@dataclass(frozen=True)
class Found:
    """State of the creation of a page: loaded tasks, missing or damaged parts, warnings."""

    missing: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    tasks: dict[tuple, Task] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)  # about policies that leave the support of the data

    def readable(self, read: Callable[[], Value]) -> Value | None:
        """Return the result of `read`; on an `InputError`, record the reason and return None."""
        try:
            return read()
        except InputError as error:
            if str(error) not in self.damage:
                self.damage.append(str(error))
            return None

    def loaded_task(self, run: Run) -> Task | None:
        """Return the task of a run if it is already loaded, perhaps for another run on the same data."""
        key = tuple(getattr(run.config, name) for name in TASK_SETTINGS)
        return vars(run).get("task", self.tasks.get(key))

    def task_of(self, run: Run) -> Task | None:
        """Load the task of a run; if that fails, record the reason and return None."""
        key = tuple(getattr(run.config, name) for name in TASK_SETTINGS)
        if key in self.tasks and "task" not in vars(run):
            run.task = self.tasks[key]
        try:
            self.tasks.setdefault(key, run.task)
            return run.task
        except InputError as error:
            words = f"the task {run.config.task} cannot be loaded, so its data is not shown: {error}"
            if words not in self.missing:
                self.missing.append(words)
            return None


class Opened(list[Run]):
    """Runs, and messages about folders that could not be opened."""

    def __init__(self, runs: Iterable[Run], skipped: Sequence[str] = ()):
        super().__init__(runs)
        self.skipped = list(skipped)


def open_runs(runs: Run | Path | str | Iterable[Run | Path | str]) -> Opened:
    """Open the given runs and all runs below the given folders, each once.

    A given run must be readable; unreadable runs below a folder are listed in `skipped`.
    """
    found: dict[Path, Run] = {}
    skipped: list[str] = []
    for each in [runs] if isinstance(runs, Run | Path | str) else runs:
        if isinstance(each, Run):
            found.setdefault(each.path.absolute(), each)
            continue
        for folder in run_folders(Path(each)):
            try:
                found.setdefault(folder.absolute(), open_run(folder))
            except InputError as error:
                if folder == Path(each):
                    raise
                skipped.append(f"skipped {folder}: {error}")
    if not found:
        raise InputError(skipped[0] if skipped else "no run was given; give a run folder, or a folder with runs")
    return Opened(found.values(), skipped)


def run_folders(path: Path) -> list[Path]:
    """Return the folder of a run, or those of all runs below a folder."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give a run, or a folder with runs")
    if (path / CONFIG).is_file():
        return [path]
    folders = sorted(each.parent for each in path.rglob(CONFIG))
    if not folders:
        raise InputError(f"{path} contains no runs; a run has a {CONFIG}, which `drol train` writes")
    return folders


def label_runs(runs: Sequence[Run]) -> list[Shown]:
    """Return runs with the labels of `drol compare`, even without evaluations."""
    stands = [stand_in(run) for run in runs]
    labels = make_labels(list({each.group: each for each in stands}.values()))
    return [Shown(run, labels[each.group]) for run, each in zip(runs, stands, strict=True)]


def first_of_each_group(shown: Sequence[Shown], found: Found) -> list[Shown]:
    """Return the first run of each group and task, at most `DRAWN_RUNS`."""
    first = {(each.run.config.task, each.label): each for each in reversed(shown)}
    kept = [each for each in shown if first[each.run.config.task, each.label] is each]
    if len(kept) > DRAWN_RUNS:
        words = f"episodes and actions are shown for the first {DRAWN_RUNS} of {len(kept)} groups"
        if words not in found.missing:
            found.missing.append(words)
    return kept[:DRAWN_RUNS]
