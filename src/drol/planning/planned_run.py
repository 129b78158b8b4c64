"""Planned runs: the settings, the folder, the job and the status of each."""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drol.checkpoints import saved_steps
from drol.jobs.job import Job
from drol.planning.run_file import RunFile, missing_best_of
from drol.presets.settings import settings
from drol.runs.config import GROWING, RunConfig
from drol.runs.directory import LOCK, RunDirectory
from drol.storage import is_held

LONGEST_LABEL = 100  # characters; a label that is longer, or does not match `PLAIN_LABEL`, is replaced by a digest
LONGEST_FILE_NAME = 200  # characters, without the digest and the extension of a run file
PLAIN_LABEL = re.compile(r"[A-Za-z0-9_.+-]+")
CANDIDATES = "num_candidates"


@dataclass(frozen=True)
class PlannedRun:
    """A method on a task with some seeds, trained in one process from a preset."""

    preset: str
    task: str
    method: str
    seeds: tuple[int, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the preset
    best_of: tuple[int, ...] = ()  # further evaluations of the last policy

    @functools.cached_property
    def name(self) -> str:
        """Return the folder of the run below the root; the same run has the same name in every plan."""
        seeds = shortened(f"seed-{'-'.join(map(str, self.seeds))}", LONGEST_LABEL)
        return f"{self.preset}/{self.task}/{self.label}/{seeds}"

    @functools.cached_property
    def label(self) -> str:
        """Return the method, K (if it has one) and the settings that differ from the preset, except the steps."""
        own, preset = self.settings, configuration(self.preset, self.task, self.method)
        changed = {name: value_of(own, name) for name in sorted({*self.changes} - {*GROWING, CANDIDATES})}
        changed = {name: value for name, value in changed.items() if value != value_of(preset, name)}
        candidates = getattr(own.algorithm, CANDIDATES, None)
        start = self.method if candidates is None else f"{self.method}-k{candidates}"
        label = start + "".join(f"-{name}-{shown(value)}" for name, value in changed.items())
        if len(label) <= LONGEST_LABEL and PLAIN_LABEL.fullmatch(label):
            return label
        return f"{start}-{hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:8]}"

    @property
    def settings(self) -> RunConfig:
        """The settings of the run without its seeds."""
        return configuration(self.preset, self.task, self.method, frozen(self.changes))

    @functools.cached_property
    def config(self) -> RunConfig:
        return dataclasses.replace(self.settings, seeds=self.seeds)

    @property
    def steps(self) -> int:
        """Updates of each seed, online ones included."""
        return self.settings.total_steps

    def log(self, root: Path) -> Path:
        """Return the file for the output of the run's processes."""
        return root / "logs" / f"{self.file_name}.log"

    def job(self, root: Path, imports: Iterable[str] = (), track: str | None = None) -> Job:
        """Write the run to a file below `root / "jobs"` and return the job that executes the file.

        Args:
            root: The folder of all runs.
            imports: Modules that the process of the job imports first. They are arguments of the job and not part of
                the file, so that a file alone cannot cause an import.
            track: The tracker that mirrors the rows of the run; none if None.
        """
        folder = root / self.name
        file = RunFile(self.config, folder.absolute(), self.best_of, track).write(root / "jobs", self.file_name)
        more = [word for module in imports for word in ("--import", module)]
        return Job(self.name, ("execute", str(file.absolute()), *more), self.log(root), folder / LOCK)

    @property
    def file_name(self) -> str:
        """The name of the run as a file name."""
        return shortened(self.name.replace("/", "_"), LONGEST_FILE_NAME)

    def status(self, root: Path) -> "RunStatus":
        """Return the status of the run (read-only)."""
        folder, steps = root / self.name, self.steps
        if not folder.is_dir() or not (directory := RunDirectory(folder)).exists:
            return RunStatus(0, steps, False)
        step = max(saved_steps(directory.checkpoints), default=0)
        scores = directory.scores_at(steps, len(self.seeds)) if step >= steps else {}
        done = scores.keys() >= {*self.seeds} and not self.missing_best_of(root)
        known = tuple(score for score in scores.values() if score is not None)
        return RunStatus(step, steps, is_held(folder / LOCK), done, known)

    def missing_best_of(self, root: Path) -> list[int]:
        """Return the numbers of actions whose evaluations after training are missing."""
        return missing_best_of(RunDirectory(root / self.name), self.config, self.best_of) if self.best_of else []


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run."""

    step: int
    steps: int
    running: bool
    done: bool = False
    scores: tuple[float, ...] = ()  # of its seeds after its last step

    def __str__(self) -> str:
        if self.done:
            return "done"
        if self.running:
            return f"running, {self.step:,} of {self.steps:,}"
        if self.step >= self.steps:
            return "trained, evaluations missing"
        return f"stopped at {self.step:,}" if self.step else "missing"


def frozen(changes: Mapping[str, Any]) -> tuple[tuple[str, type, Any], ...]:
    """Return changes as a hashable cache key that distinguishes 1 from True."""
    return tuple((name, type(value), value) for name, value in sorted(changes.items()))


@functools.cache
def configuration(preset: str, task: str, method: str, changes: tuple[tuple[str, type, Any], ...] = ()) -> RunConfig:
    """Return the settings of a planned run; cached, because thousands of seeds share them."""
    return settings(task, method, preset, **{name: value for name, _, value in changes})


def value_of(config: RunConfig, name: str) -> Any:
    return getattr(config if hasattr(config, name) else config.algorithm, name)


def shown(value: Any) -> str:
    """Return a value as text for a name; different values give different texts."""
    if isinstance(value, bool):
        return str(value).lower()
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value).removesuffix(".0")


def shortened(text: str, most: int) -> str:
    """Return a name truncated to at most `most` characters, with a hash suffix to keep it unique."""
    if len(text) <= most:
        return text
    return f"{text[: most - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
