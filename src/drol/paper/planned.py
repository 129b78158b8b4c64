"""Runs that are planned: what each is, where its folder is, which commands make it, and how far it is."""

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
from drol.experiments.results.collect import changed_settings
from drol.experiments.results.result import settings_id
from drol.paper.presets import settings
from drol.queue.jobs import Job
from drol.runs.config import GROWING, RunConfig
from drol.runs.directory import LOCK, RunDirectory
from drol.storage import is_held

LONGEST_LABEL = 100  # characters; what is longer, or has others than these, is told by a digest
LONGEST_LOG = 200  # characters of the name of a log
PLAIN_LABEL = re.compile(r"[A-Za-z0-9_.+-]+")
CANDIDATES = "num_candidates"
Evaluated = frozenset[tuple]  # at the end of a training: task, method, settings, actions drawn, seed, updates


@dataclass(frozen=True)
class PlannedRun:
    """A method on a task with some seeds, trained in one process from a preset."""

    preset: str
    task: str
    method: str
    seeds: tuple[int, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)  # of what the preset says
    best_of: tuple[int, ...] = ()  # how else the last policy is evaluated

    @functools.cached_property
    def name(self) -> str:
        """Return the folder of the run below the root: the same run has the same name in every plan."""
        seeds = shortened(f"seed-{'-'.join(map(str, self.seeds))}", LONGEST_LABEL)
        return f"{self.preset}/{self.task}/{self.label}/{seeds}"

    @functools.cached_property
    def label(self) -> str:
        """Return the method and what differs from the preset, whatever the number of steps; K is always said."""
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
        """The settings of the run but for its seeds."""
        return configuration(self.preset, self.task, self.method, frozen(self.changes))

    @functools.cached_property
    def config(self) -> RunConfig:
        return dataclasses.replace(self.settings, seeds=self.seeds)

    @property
    def steps(self) -> int:
        """Updates of each seed, online ones included."""
        return self.settings.total_steps

    def commands(self, root: Path) -> list[list[str]]:
        """Return the arguments of `drol` that make the run; each of them may be given again."""
        flags = [word for name in self.changes for word in flag_of(self.settings, name)]
        train = ["train", self.task, "--algorithm", self.method, "--preset", self.preset, *flags, "--seeds"]
        out = str(root / self.name)
        evaluations = [["evaluate", out, "--best-of", str(count)] for count in self.missing_best_of(root)]
        return [[*train, *map(str, self.seeds), "--out", out], *evaluations]

    def job(self, root: Path, imports: Iterable[str] = (), track: str | None = None) -> Job:
        """Return the job that makes the run; each of its commands imports some modules first, a tracker may follow."""
        more = [word for module in imports for word in ("--import", module)]
        training = ["--quiet", *(["--track", track] if track else [])]
        commands = tuple((*each, *(training if each[0] == "train" else []), *more) for each in self.commands(root))
        log = root / "logs" / f"{shortened(self.name.replace('/', '_'), LONGEST_LOG)}.log"
        return Job(self.name, commands, log, root / self.name / LOCK)

    def state(self, root: Path, elsewhere: Evaluated = frozenset()) -> "State":
        """Return how far the run is; one whose results are known from elsewhere is done."""
        if elsewhere and self.evaluations() <= elsewhere:
            return State(self.steps, self.steps, False, True)
        folder, steps = root / self.name, self.steps
        if not folder.is_dir() or not (directory := RunDirectory(folder)).exists:
            return State(0, steps, False)
        step = max(saved_steps(directory.checkpoints), default=0)
        scores = directory.scores_at(steps, len(self.seeds)) if step >= steps else {}
        done = scores.keys() >= {*self.seeds} and not self.missing_best_of(root)
        known = tuple(score for score in scores.values() if score is not None)
        return State(step, steps, is_held(folder / LOCK), done, known)

    def evaluations(self) -> Evaluated:
        """Return the evaluations that the run ends with."""
        config = self.settings
        identity = settings_id(changed_settings(config, {}, config.steps))
        drawn = (config.algorithm.default_best_of, *self.best_of)
        return frozenset(
            (self.task, self.method, identity, count, seed, self.steps) for count in drawn for seed in self.seeds
        )

    def missing_best_of(self, root: Path) -> list[int]:
        """Return which of the evaluations after training are missing."""
        if not self.best_of:
            return []
        directory = RunDirectory(root / self.name)
        rows = directory.read_extra_evaluations() if directory.exists else []
        found = {(row.best_of, row.seed) for row in rows if row.step == self.steps and not row.acting}
        return [count for count in self.best_of if not found >= {(count, seed) for seed in self.seeds}]


@dataclass(frozen=True)
class State:
    """How far a run is."""

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
    """Return changes as something to remember settings by; 1 and true are not the same there."""
    return tuple((name, type(value), value) for name, value in sorted(changes.items()))


@functools.cache
def configuration(preset: str, task: str, method: str, changes: tuple[tuple[str, type, Any], ...] = ()) -> RunConfig:
    """Return the settings of a planned run; those of thousands of seeds are made once."""
    return settings(task, method, preset, **{name: value for name, _, value in changes})


def value_of(config: RunConfig, name: str) -> Any:
    return getattr(config if hasattr(config, name) else config.algorithm, name)


def shown(value: Any) -> str:
    """Return a value as a name has it, so that no two values look the same."""
    if isinstance(value, bool):
        return str(value).lower()
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value).removesuffix(".0")


def flag_of(config: RunConfig, name: str) -> list[str]:
    """Return the words of `drol train` that give a setting."""
    owner = config if hasattr(config, name) else config.algorithm
    metadata = next(each.metadata for each in dataclasses.fields(owner) if each.name == name)
    flag, value = metadata.get("flag", f"--{name.replace('_', '-')}"), value_of(config, name)
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, tuple):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]


def shortened(text: str, most: int) -> str:
    """Return a name of a file that no system finds too long, and that no other name is shortened to."""
    if len(text) <= most:
        return text
    return f"{text[: most - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
