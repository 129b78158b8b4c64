"""Run, resume and stop sweeps, and retry their failed runs."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from drol.errors import InputError, counted
from drol.jobs import make_executor
from drol.jobs.job import Executor, Finished, read_timings
from drol.planning.execute_runs import execute_runs
from drol.planning.planned_run import PlannedRun, RunStatus
from drol.progress import Report
from drol.runs.directory import RunDirectory
from drol.storage import exclusive, is_held
from drol.sweeps.failures import clear_failures, note_failure
from drol.sweeps.objective import check_metric
from drol.sweeps.sweep import RUNGS, Sweep
from drol.sweeps.sweep_runs import SweptRun, promoted_runs, runs_of_choice, swept_runs
from drol.tasks.catalogue import absent_tasks
from drol.tracking import check_tracker
from drol.training.train import check_same_run

LOCK, STOP = "lock", "stop"  # in the folder of a sweep
SHOWN_TASKS = 4  # that an error names
WAIT_SECONDS = 2.0  # between two checks of runs that another process trains


def run_sweep(
    sweep: Sweep,
    executor: Executor | None = None,
    report: Report | None = None,
    imports: Iterable[str] = (),
    again: bool = False,
    track: str | None = None,
) -> list[SweptRun]:
    """Execute the missing runs of a sweep; the same call again resumes an interrupted sweep.

    Args:
        sweep: The sweep, from `read_sweep`.
        executor: Executes the runs; if None, processes on this machine, one per core.
        report: Called as `report(done, total, what)` while runs progress, in updates of a seed.
        imports: Modules that the process of each run imports first.
        again: Whether to retry failed runs; otherwise they are skipped.
        track: The tracker that mirrors the rows of each run: "wandb", "tensorboard" or "trackio"; none if None.

    Returns:
        All runs of the sweep with their status. A failed run does not stop the others. After a signal, all runs save
        and stop, and `KeyboardInterrupt` is raised. After `stop_sweep`, all runs save and stop, and this returns.
    """
    check_metric(sweep)
    if track is not None:
        check_tracker(track)
    runs = swept_runs(sweep)
    for each in runs:
        check_folder(each, sweep.root)
    check_data(runs)
    with holding(sweep):
        (sweep.folder / STOP).unlink(missing_ok=True)
        if again:
            clear_failures(sweep.root, (each.run.log(sweep.root) for each in runs if each.failure))
        executor, imports = executor or make_executor(), tuple(imports)
        while do_what_is_due(sweep, executor, report, imports, track):
            pass
    return swept_runs(sweep)


def check_data(runs: Iterable[SweptRun]) -> None:
    """Raise one `InputError` for all tasks whose data is missing, before any run starts."""
    waiting = [each.run for each in runs if not each.ended and not each.dropped]
    tasks = list(dict.fromkeys(run.task for run in waiting if run.settings.dataset is None))
    absent = absent_tasks(tasks)
    if absent:
        more = f" and {len(absent) - SHOWN_TASKS} more" if len(absent) > SHOWN_TASKS else ""
        count = sum(run.task in absent for run in waiting)
        raise InputError(
            f"{count} of {counted(len(waiting), 'run')} cannot start, because the data of "
            f"{counted(len(absent), 'task')} is not here: {', '.join(absent[:SHOWN_TASKS])}{more}; get it with "
            "`drol data download` or `drol data collect`, or change the sweep's tasks"
        )


def check_folder(each: SweptRun, root: Path) -> None:
    """Raise `InputError` if the folder has another run, or if its run passed this step without an evaluation."""
    if each.status.done or not (root / each.run.name).exists():
        return
    directory = RunDirectory(root / each.run.name)
    if each.status.step > each.run.steps:
        raise InputError(
            f"the run in {directory.path} is at step {each.status.step:,} and has no evaluation at step "
            f"{each.run.steps:,}; give steps = {each.status.step}, or another root"
        )
    check_same_run(directory, each.run.config)


def do_what_is_due(
    sweep: Sweep, executor: Executor, report: Report | None, imports: tuple[str, ...], track: str | None
) -> bool:
    """Execute the runs that can be executed now; return whether to call this again.

    There may be more runs afterwards: runs of the next rung, or runs that another process was training.
    """
    runs = swept_runs(sweep)
    if sweep.search.kind == "asha" and promoted_runs(sweep, runs):  # they were done before a kill, or in another sweep
        return True
    if sweep.search.kind in RUNGS:
        check_values(sweep, runs)
    due = [(each.run, each.status) for each in runs if not each.ended and not each.dropped]
    if not due or was_stopped(sweep):
        return False
    if all(status.running for _, status in due):  # in another sweep that shares them, or in another process
        time.sleep(WAIT_SECONDS)
        return True

    def on_finished(run: PlannedRun, finished: Finished) -> list[PlannedRun]:
        status = run.status(sweep.root)
        if finished.code == 0 and status.done:
            clear_failures(sweep.root, [finished.log])
        elif not status.running:  # otherwise another process trains the run, and the sweep waits for it
            note_failure(sweep.root, finished)
        if sweep.search.kind != "asha":
            return []
        key = next(each.key for each in runs if each.run.name == run.name)
        return promoted_runs(sweep, runs_of_choice(sweep, key))

    go_on = functools.partial(goes_on, sweep)
    allow = allowance(sweep, runs)
    ended = execute_runs(due, sweep.root, executor, report, imports, allow, on_finished, go_on, track)
    return bool(ended) and go_on()  # if no run ended, the budget is spent


def check_values(sweep: Sweep, runs: Iterable[SweptRun]) -> None:
    """Raise `InputError` if none of the runs that are done has the metric that decides which choices are dropped."""
    done = [each for each in runs if each.status.done]
    if done and all(each.value is None for each in done):
        raise InputError(
            f"none of the {len(done)} runs that ended has a finite {sweep.search.metric}, which is compared; "
            "choose another search.metric (figures of validation/ need data with a validation part)"
        )


def goes_on(sweep: Sweep) -> bool:
    return not was_stopped(sweep)


def allowance(sweep: Sweep, runs: Iterable[SweptRun]) -> Callable[[PlannedRun, RunStatus], bool]:
    """Return a function that decides whether a run may start: not if it would exceed the budget."""
    budget, names = sweep.budget, {each.run.name for each in runs}
    used = sum(len(each.run.seeds) * each.status.step for each in runs)

    def allow(run: PlannedRun, status: RunStatus) -> bool:
        nonlocal used
        need = len(run.seeds) * max(0, run.steps - status.step)
        if budget.updates is not None and used + need > budget.updates:
            return False
        if budget.core_hours is not None:
            hours = sum(each.core_hours for each in read_timings(sweep.root) if each.run in names)
            if hours >= budget.core_hours:
                return False
        used += need
        return True

    return allow


@contextlib.contextmanager
def holding(sweep: Sweep) -> Iterator[None]:
    """Lock the sweep for this process."""
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
        (sweep.root / "logs").mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to the root {sweep.root} ({error.strerror}); choose another root") from error
    busy = f"the sweep {sweep.name} is running already; `drol sweep status` shows it, `drol sweep stop` ends it"
    with exclusive(sweep.folder / LOCK, busy):
        yield


def is_running(sweep: Sweep) -> bool:
    """Return whether a process runs the sweep now."""
    return is_held(sweep.folder / LOCK)


def was_stopped(sweep: Sweep) -> bool:
    """Return whether `stop_sweep` stopped the sweep and it was not started again."""
    return (sweep.folder / STOP).exists()


def stop_sweep(sweep: Sweep, seconds: float | None = None) -> bool:
    """Ask the process that runs a sweep to save and stop all runs, and wait until it has ended.

    Args:
        sweep: The sweep. `InputError` is raised if it is not running.
        seconds: Maximum time to wait; unlimited if None.

    Returns:
        Whether the sweep has ended.
    """
    if not is_running(sweep):
        raise InputError(f"the sweep {sweep.name} is not running, so there is nothing to stop")
    deadline = None if seconds is None else time.monotonic() + seconds
    while is_running(sweep):
        (sweep.folder / STOP).touch()  # repeatedly, because a sweep that has just started deletes the file once
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
