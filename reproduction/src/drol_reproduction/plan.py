"""Plan the runs of tables and figures of the paper, and find the finished ones."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drol.errors import InputError, unknown_name
from drol.planning.planned_run import PlannedRun, RunStatus
from drol.presets.settings import GROUP_OF_TASK, TASKS
from drol.results.collect import changed_settings, collect_results
from drol.results.merge import distinct
from drol.results.result import Result, settings_id
from drol.runs.directory import EVALUATIONS
from drol_reproduction.experiments import COLUMNS, TUNED, Block, blocks_of, ladder_of
from drol_reproduction.scores import choosing_tasks, chosen_candidates

ROOT = Path("runs/paper")  # the folder with the runs of a reproduction
Evaluated = frozenset[tuple]  # evaluations after training: task, method, settings, actions drawn, seed, updates


@dataclass(frozen=True)
class Plan:
    """The runs of a table or figure, the most useful first, and remarks on them."""

    experiment: str
    scale: str
    root: Path
    runs: tuple[PlannedRun, ...]
    notes: tuple[str, ...] = ()
    elsewhere: Evaluated = frozenset()  # evaluations that need no run here

    def statuses(self) -> list[tuple[PlannedRun, RunStatus]]:
        return [(each, status_of(each, self.root, self.elsewhere)) for each in self.runs]

    def unfinished(self) -> list[PlannedRun]:
        return [each for each, status in self.statuses() if not status.done]


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
        experiments: Any of "table1", "full", "fig2", "fig3", "fig4" and "controls".
        scale: "paper", "short", "medium", "small" or "smoke"; `drol.presets.scales` explains them.
        tasks: A pattern for the names of tasks, such as "cube-*".
        methods: Columns of the table; all if None. "drol*" is DROL with the K that the paper's protocol chooses.
        seeds: Seeds of each task; the number of the scale if None.
        root: The folder with the runs.
        seeds_per_run: Seeds trained in one process; all at the scale "paper", else one, if None.
        results: Results of `collect_results` from elsewhere; their runs count as finished.

    Returns:
        The plan; `drol_reproduction.execute_plan.execute` runs it.
    """
    root, names = Path(root), [experiments] if isinstance(experiments, str) else list(experiments)
    for name, value in (("seeds", seeds), ("seeds_per_run", seeds_per_run)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    blocks = [block for name in names for block in blocks_of(name, scale)]
    planned = dict.fromkeys((*COLUMNS, *(method for block in blocks for method in block.methods)))
    for method in methods or ():
        if method not in planned:
            raise unknown_name("method", method, planned)
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
            if each.best_of and not known_run.best_of:  # another experiment needs more evaluations of the same run
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
    """Return the evaluations at the end of training among results."""
    return frozenset((*row.group, row.seed, row.steps) for row in results if row.step == row.steps)


def final_evaluations(run: PlannedRun) -> Evaluated:
    """Return the evaluations at the end of a run."""
    config = run.settings
    identity = settings_id(changed_settings(config, {}, config.steps))
    drawn = (config.algorithm.default_best_of, *run.best_of)
    return frozenset((run.task, run.method, identity, count, seed, run.steps) for count in drawn for seed in run.seeds)


def status_of(run: PlannedRun, root: Path, elsewhere: Evaluated) -> RunStatus:
    """Return the progress of a run; a run with all evaluations in `elsewhere` is done."""
    if elsewhere and final_evaluations(run) <= elsewhere:
        return RunStatus(run.steps, run.steps, False, True)
    return run.status(root)


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
    """Yield the runs of a block, with the runs of `tuned_runs` for DROL*."""
    count = seeds or block.seeds
    groups = seed_groups(count, seeds_per_run or (count if scale == "paper" else 1))
    for group in groups:  # the first seed of every method and task, then the second
        for task in tasks:
            for method in methods:
                for candidates in block.candidates if method == "drol" else (None,):
                    changes = (
                        dict(block.changes) if candidates is None else {"num_candidates": candidates, **block.changes}
                    )
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
    """Yield the runs that choose K for a task and, once these are done, the runs of the task with the chosen K."""
    ladder = [
        PlannedRun(scale, each, "drol", group, {"num_candidates": candidates})
        for each in choosing_tasks(task)
        for candidates in ladder_of(scale)
        for group in groups
    ]
    yield from ladder
    folders = [root / scale / each for each in choosing_tasks(task)]
    here = collect_results([folder for folder in folders if any(folder.rglob(EVALUATIONS))])
    chosen = chosen_candidates(distinct([*here, *results]), task, ladder_of(scale))
    if chosen is None:
        elsewhere = evaluated(results)
        done = sum(status_of(each, root, elsewhere).done for each in ladder)
        notes.append(
            f"K* of {task}: not chosen yet, {done} of {len(ladder)} runs on {' '.join(choosing_tasks(task))} are done"
        )
        return
    for group in groups:
        yield PlannedRun(scale, task, "drol", group, {"num_candidates": chosen})


def family_of(task: str) -> str:
    """Return the family of a task: a row of the paper's first table, or the environment of an OGBench task."""
    if task in TASKS and task.endswith(("-v1", "-v2")):
        return "antmaze (D4RL)" if task.endswith("-v2") else "adroit (D4RL)"
    dataset, single, _ = task.partition("-singletask")
    return GROUP_OF_TASK.get(task) or (dataset.rpartition("-")[0] if single else task)
