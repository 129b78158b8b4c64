"""The runs that a table or figure of the paper needs, and which of them are done."""

import fnmatch
import functools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drol.errors import InputError, unknown_name
from drol.experiments.results.collect import changed_settings, collect_results
from drol.experiments.results.result import Result, settings_id
from drol.paper.presets import GROUP_OF_TASK, settings
from drol.paper.reproduce.experiments import COLUMNS, TUNED, Block, blocks_of, ladder_of
from drol.paper.reproduce.scores import choosing_tasks, chosen_candidates
from drol.runs.config import RunConfig
from drol.runs.directory import EVALUATIONS, LOCK, RunDirectory
from drol.runs.run import Run
from drol.storage import exclusive

ROOT = Path("runs/paper")  # where the runs of a reproduction are kept
Evaluated = frozenset[tuple]  # evaluations at the end of a training: task, method, settings, actions drawn, seed


@dataclass(frozen=True)
class PlannedRun:
    """One run of a reproduction: a method on a task with some seeds, trained in one process."""

    scale: str
    task: str
    method: str
    seeds: tuple[int, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)  # of what the scale's preset says
    best_of: tuple[int, ...] = ()  # how else the last policy is evaluated

    @property
    def name(self) -> str:
        """Return the folder of the run below the root: the same run has the same name in every plan."""
        label = self.method + "".join(f"-k{value}" for name, value in self.changes.items() if name == "num_candidates")
        label += "".join(f"-{name}-{value}" for name, value in self.changes.items() if name != "num_candidates")
        return f"{self.scale}/{self.task}/{label}/seed-{'-'.join(map(str, self.seeds))}"

    @functools.cached_property
    def config(self) -> RunConfig:
        return settings(self.task, self.method, self.scale, seeds=self.seeds, **self.changes)

    def commands(self, root: Path) -> list[list[str]]:
        """Return the arguments of `drol` that make the run; each of them may be given again."""
        flags = [word for name, value in self.changes.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        train = ["train", self.task, "--algorithm", self.method, "--preset", self.scale, *flags, "--seeds"]
        out = str(root / self.name)
        evaluations = [["evaluate", out, "--best-of", str(count)] for count in self.missing_best_of(root)]
        return [[*train, *map(str, self.seeds), "--out", out], *evaluations]

    def state(self, root: Path, elsewhere: Evaluated = frozenset()) -> "State":
        """Return how far the run is; one whose results are known from elsewhere is done."""
        if self.evaluations() <= elsewhere:
            return State(self.config.total_steps, self.config.total_steps, False, True)
        directory = RunDirectory(root / self.name)
        if not directory.exists:
            return State(0, self.config.total_steps, False)
        step = Run(directory, self.config).step
        evaluated = {row.seed for row in directory.read_evaluations() if row.step == self.config.total_steps}
        done = step >= self.config.total_steps and evaluated >= {*self.seeds}
        return State(step, self.config.total_steps, is_locked(directory), done and not self.missing_best_of(root))

    def evaluations(self) -> Evaluated:
        """Return the evaluations that the run ends with."""
        config = self.config
        identity = settings_id(changed_settings(config, {}, config.steps))
        drawn = (config.algorithm.default_best_of, *self.best_of)
        return frozenset((self.task, self.method, identity, count, seed) for count in drawn for seed in self.seeds)

    def missing_best_of(self, root: Path) -> list[int]:
        """Return which of the evaluations after training are missing."""
        directory = RunDirectory(root / self.name)
        rows = directory.read_extra_evaluations() if directory.exists else []
        last = self.config.total_steps
        found = {(row.best_of, row.seed) for row in rows if row.step == last and not row.acting}
        return [count for count in self.best_of if not found >= {(count, seed) for seed in self.seeds}]


@dataclass(frozen=True)
class State:
    """How far a run is."""

    step: int
    steps: int
    running: bool
    done: bool = False

    def __str__(self) -> str:
        if self.done:
            return "done"
        if self.running:
            return f"running, {self.step:,} of {self.steps:,}"
        if self.step >= self.steps:
            return "trained, evaluations missing"
        return f"stopped at {self.step:,}" if self.step else "missing"


def is_locked(directory: RunDirectory) -> bool:
    """Return whether a process trains in a folder now."""
    if not (directory.path / LOCK).is_file():
        return False
    try:
        with exclusive(directory.path / LOCK, "busy"):
            return False
    except InputError:
        return True


@dataclass(frozen=True)
class Plan:
    """The runs of a table or figure, in the order in which they are worth having, and remarks on them."""

    experiment: str
    scale: str
    root: Path
    runs: tuple[PlannedRun, ...]
    notes: tuple[str, ...] = ()
    elsewhere: Evaluated = frozenset()  # what needs no run here

    def states(self) -> list[tuple[PlannedRun, State]]:
        return [(each, each.state(self.root, self.elsewhere)) for each in self.runs]

    def unfinished(self) -> list[PlannedRun]:
        return [each for each, state in self.states() if not state.done]


def make_plan(
    experiments: str | Sequence[str],
    scale: str = "paper",
    tasks: str = "*",
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    root: Path | str = ROOT,
    seeds_per_run: int | None = None,
    results: Sequence[Result] = (),
) -> Plan:
    """Plan the runs of tables and figures of the paper.

    Args:
        experiments: Any of "table1", "full", "fig2", "fig3" and "fig4".
        scale: "paper", "small" (what two cores carry) or "smoke" (only to see that all of it works).
        tasks: A pattern that the names of tasks match, such as "cube-*".
        methods: Columns of the table; all if None. "drol*" is DROL with the K that the paper's protocol chooses.
        seeds: Seeds of each task; the number of the scale if None.
        root: Where the runs are kept.
        seeds_per_run: Seeds trained in one process; all at the scale "paper", else one, if None.
        results: Results of runs that were made elsewhere and are not to be made again, as `collect_results` gives them.

    Returns:
        The plan; `drol.paper.reproduce.execute.execute` runs it.
    """
    root, names = Path(root), [experiments] if isinstance(experiments, str) else list(experiments)
    for method in methods or ():
        if method not in COLUMNS:
            raise unknown_name("method", method, COLUMNS)
    for name, value in (("seeds", seeds), ("seeds_per_run", seeds_per_run)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    blocks = [block for name in names for block in blocks_of(name, scale)]
    known = list(dict.fromkeys(task for block in blocks for task in block.tasks))
    if not fnmatch.filter(known, tasks):
        raise InputError(f"no task of {' '.join(names)} at scale {scale} matches {tasks!r}; it has {', '.join(known)}")
    runs: dict[str, PlannedRun] = {}
    notes: list[str] = []
    for block in blocks:
        matching = fnmatch.filter(block.tasks, tasks)
        chosen = [method for method in block.methods if methods is None or method in methods]
        for each in block_runs(block, matching, chosen, scale, seeds, seeds_per_run, root, notes, results):
            known_run = runs.setdefault(each.name, each)
            if each.best_of and not known_run.best_of:  # another experiment wants more of the same run
                runs[each.name] = each
    if not runs and not notes:
        allowed = dict.fromkeys(method for block in blocks for method in block.methods)
        wanted = ", ".join(methods or ())
        raise InputError(
            f"{' '.join(names)} at scale {scale} has no runs of {wanted} there; it has {', '.join(allowed)}"
        )
    notes = list(dict.fromkeys(notes))
    return Plan(" ".join(names), scale, root, tuple(runs.values()), tuple(notes), evaluated(results))


def evaluated(results: Iterable[Result]) -> Evaluated:
    """Return the evaluations of results that were made at the end of a training."""
    return frozenset((*row.group, row.seed) for row in results if row.step == row.steps)


def block_runs(
    block: Block,
    tasks: Iterable[str],
    methods: Sequence[str],
    scale: str,
    seeds: int | None,
    seeds_per_run: int | None,
    root: Path,
    notes: list[str],
    results: Sequence[Result],
) -> Iterable[PlannedRun]:
    """Yield the runs of a block; those of DROL* are the ones that choose K until they are done."""
    count = seeds or block.seeds
    groups = seed_groups(count, seeds_per_run or (count if scale == "paper" else 1))
    for group in groups:  # first one seed of everything, then the next
        for task in tasks:
            for method in methods:
                for candidates in block.candidates if method == "drol" else (None,):
                    changes = {} if candidates is None else {"num_candidates": candidates}
                    if method != TUNED:
                        yield PlannedRun(scale, task, method, group, changes, block.best_of if candidates else ())
    for task in tasks if TUNED in methods else ():
        yield from tuned_runs(task, scale, groups, root, notes, results)


def seed_groups(count: int, per_run: int) -> list[tuple[int, ...]]:
    return [tuple(range(first, min(first + per_run, count))) for first in range(0, count, per_run)]


def tuned_runs(
    task: str,
    scale: str,
    groups: Sequence[tuple[int, ...]],
    root: Path,
    notes: list[str],
    results: Sequence[Result],
) -> Iterable[PlannedRun]:
    """Yield the runs that choose K for a task and, when these are done, the runs of the task with it."""
    ladder = [
        PlannedRun(scale, each, "drol", group, {"num_candidates": candidates})
        for each in choosing_tasks(task)
        for candidates in ladder_of(scale)
        for group in groups
    ]
    yield from ladder
    folders = [root / scale / each for each in choosing_tasks(task)]
    here = collect_results([folder for folder in folders if any(folder.rglob(EVALUATIONS))])
    chosen = chosen_candidates([*here, *results], task, ladder_of(scale))
    if chosen is None:
        elsewhere = evaluated(results)
        done = sum(each.state(root, elsewhere).done for each in ladder)
        notes.append(
            f"K* of {task}: not chosen yet, {done} of {len(ladder)} runs on {' '.join(choosing_tasks(task))} are done"
        )
        return
    for group in groups:
        yield PlannedRun(scale, task, "drol", group, {"num_candidates": chosen})


def family_of(task: str) -> str:
    """Return the family of a task: a row of the paper's first table, or the environment of an OGBench task."""
    if task.endswith("-v2"):
        return "antmaze (D4RL)"
    if task.endswith("-v1"):
        return "adroit (D4RL)"
    return GROUP_OF_TASK.get(task) or "-".join(task.split("-singletask")[0].split("-")[:-1])


def command_lines(run: PlannedRun, root: Path) -> list[str]:
    """Return the commands of a run as one types them."""
    return [shlex.join(["drol", *arguments]) for arguments in run.commands(root)]
