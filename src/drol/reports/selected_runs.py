"""The runs of a page: which they are, what they are called, what they share."""

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

DRAWN_RUNS = 6  # at most, whose episodes and actions are drawn: the first of each group
TASK_SETTINGS = ("task", "dataset", "success_timing", "frame_stack", "crop_probability")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Shown:
    """A run on a page, with the name of the group that it is one of."""

    run: Run
    label: str


@dataclass(frozen=True)
class Found:
    """What was found while a page was made: tasks, each loaded once; what is missing or damaged; warnings."""

    missing: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    tasks: dict[tuple, Task] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)  # of policies that leave the support of the data

    def readable(self, read: Callable[[], Value]) -> Value | None:
        """Return what a function reads; where that is refused, None, and the reason is kept."""
        try:
            return read()
        except InputError as error:
            if str(error) not in self.damage:
                self.damage.append(str(error))
            return None

    def loaded_task(self, run: Run) -> Task | None:
        """Return the task of a run if it was loaded, for this run or for another one on the same data."""
        key = tuple(getattr(run.config, name) for name in TASK_SETTINGS)
        return vars(run).get("task", self.tasks.get(key))

    def task_of(self, run: Run) -> Task | None:
        """Return the task of a run; where it cannot be loaded here, None, and that is said."""
        key = tuple(getattr(run.config, name) for name in TASK_SETTINGS)
        if key in self.tasks and "task" not in vars(run):
            run.task = self.tasks[key]
        try:
            self.tasks.setdefault(key, run.task)
            return run.task
        except InputError as error:
            words = f"the task {run.config.task} cannot be loaded, so nothing is drawn of its data: {error}"
            if words not in self.missing:
                self.missing.append(words)
            return None


class Opened(list[Run]):
    """Runs, and what is said of folders that were found and could not be opened."""

    def __init__(self, runs: Iterable[Run], skipped: Sequence[str] = ()):
        super().__init__(runs)
        self.skipped = list(skipped)


def open_runs(runs: Run | Path | str | Iterable[Run | Path | str]) -> Opened:
    """Return runs as they were given, or those in and below the folders that were given, each once.

    A run that was given must be readable; of those that are found below a folder, the others are named in `skipped`.
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
                skipped.append(f"{folder} is left out: {error}")
    if not found:
        raise InputError(skipped[0] if skipped else "no run was given; give a run folder, or a folder with runs")
    return Opened(found.values(), skipped)


def run_folders(path: Path) -> list[Path]:
    """Return the folder of a run, or those of all runs below a folder."""
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give a run, or a folder with runs")
    if (path / CONFIG).is_file():
        return [path]
    folders = sorted(each.parent for each in path.rglob(CONFIG))
    if not folders:
        raise InputError(f"no run is in {path} or below it; a run has a {CONFIG}, as `drol train` writes it")
    return folders


def label_runs(runs: Sequence[Run]) -> list[Shown]:
    """Return runs with the labels that `drol compare` gives them, whether they were evaluated or not."""
    stands = [stand_in(run) for run in runs]
    labels = make_labels(list({each.group: each for each in stands}.values()))
    return [Shown(run, labels[each.group]) for run, each in zip(runs, stands, strict=True)]


def first_of_each_group(shown: Sequence[Shown], found: Found) -> list[Shown]:
    """Return the first run of each group and task, as many as are drawn."""
    first = {(each.run.config.task, each.label): each for each in reversed(shown)}
    kept = [each for each in shown if first[each.run.config.task, each.label] is each]
    if len(kept) > DRAWN_RUNS:
        words = f"episodes and actions are drawn of the first {DRAWN_RUNS} of {len(kept)} groups"
        if words not in found.missing:
            found.missing.append(words)
    return kept[:DRAWN_RUNS]
