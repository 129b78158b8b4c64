"""Run a sweep, stop one, try again what failed. The same call again goes on where it was cut."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from drol.errors import InputError
from drol.paper.execute_runs import execute_runs
from drol.paper.planned import PlannedRun, State
from drol.progress import Report
from drol.queue import make_executor
from drol.queue.jobs import Executor, Finished, read_timings
from drol.runs.directory import RunDirectory
from drol.storage import exclusive, is_held
from drol.sweeps.asha import check_asha
from drol.sweeps.failures import clear_failures, note_failure
from drol.sweeps.metrics import check_metric
from drol.sweeps.runs import SweptRun, promoted_runs, runs_of_choice, swept_runs
from drol.sweeps.sweep import RUNGS, Sweep
from drol.tracking import check_tracker
from drol.training.train import check_same_run

LOCK, STOP = "lock", "stop"  # in the folder of a sweep
WAIT_SECONDS = 2.0  # between two looks at runs that another process trains


def run_sweep(
    sweep: Sweep,
    executor: Executor | None = None,
    report: Report | None = None,
    imports: Iterable[str] = (),
    again: bool = False,
    track: str | None = None,
) -> list[SweptRun]:
    """Do the runs that a sweep still lacks; the same call again goes on where it was cut.

    Args:
        sweep: What `read_sweep` returned.
        executor: What does the runs; processes of this machine, one for each core, if None.
        report: Called as `report(done, total, what)`, in updates of a seed, as runs go on.
        imports: Modules that each run imports first.
        again: Whether runs that failed are tried again; otherwise they are left alone.
        track: The tracker that mirrors the rows of each run: "wandb", "tensorboard" or "trackio"; none if None.

    Returns:
        All runs of the sweep and how far each is. A run that fails does not stop the others. A signal lets all of
        them save and stop, and raises `KeyboardInterrupt`; `stop_sweep` does the same and returns.
    """
    check_metric(sweep)
    if track is not None:
        check_tracker(track)
    if sweep.search.kind == "asha":
        check_asha()
    runs = swept_runs(sweep)
    for each in runs:
        check_folder(each, sweep.root)
    with holding(sweep):
        (sweep.folder / STOP).unlink(missing_ok=True)
        if again:
            clear_failures(sweep.root, (each.run.job(sweep.root).log for each in runs if each.failure))
        executor, imports = executor or make_executor(), tuple(imports)
        while do_what_is_due(sweep, executor, report, imports, track):
            pass
    return swept_runs(sweep)


def check_folder(each: SweptRun, root: Path) -> None:
    """Refuse a folder that holds another run, or one that went on without the evaluation that is asked for."""
    if each.state.done or not (root / each.run.name).exists():
        return
    directory = RunDirectory(root / each.run.name)
    if each.state.step > each.run.steps:
        raise InputError(
            f"the run in {directory.path} was trained to step {each.state.step:,} and has no evaluation after "
            f"{each.run.steps:,}; give steps = {each.state.step}, or another root"
        )
    check_same_run(directory, each.run.config)


def do_what_is_due(
    sweep: Sweep, executor: Executor, report: Report | None, imports: tuple[str, ...], track: str | None
) -> bool:
    """Do the runs that can be done now; return whether there may be more: the next rung, or what others trained."""
    runs = swept_runs(sweep)
    if sweep.search.kind == "asha" and promoted_runs(sweep, runs):  # they got so far before a kill, or in another sweep
        return True
    if sweep.search.kind in RUNGS:
        check_values(sweep, runs)
    due = [(each.run, each.state) for each in runs if not each.ended and not each.dropped]
    if not due or was_stopped(sweep):
        return False
    if all(state.running for _, state in due):  # by another sweep that shares them, or by hand
        time.sleep(WAIT_SECONDS)
        return True

    def on_finished(run: PlannedRun, finished: Finished) -> list[PlannedRun]:
        state = run.state(sweep.root)
        if finished.code == 0 and state.done:
            clear_failures(sweep.root, [finished.log])
        elif not state.running:  # else another process was quicker, and is waited for
            note_failure(sweep.root, finished)
        if sweep.search.kind != "asha":
            return []
        key = next(each.key for each in runs if each.run.name == run.name)
        return promoted_runs(sweep, runs_of_choice(sweep, key))

    go_on = functools.partial(goes_on, sweep)
    allow = allowance(sweep, runs)
    ended = execute_runs(due, sweep.root, executor, report, imports, allow, on_finished, go_on, track)
    return bool(ended) and go_on()  # nothing ended: the budget is spent


def check_values(sweep: Sweep, runs: Iterable[SweptRun]) -> None:
    """Refuse to drop choices where no run that reached a rung has what they are compared by."""
    done = [each for each in runs if each.state.done]
    if done and all(each.value is None for each in done):
        raise InputError(
            f"none of the {len(done)} runs that ended has a finite {sweep.search.metric}, which is compared; "
            "choose another search.metric (figures of validation/ need data with a validation part)"
        )


def goes_on(sweep: Sweep) -> bool:
    return not was_stopped(sweep)


def allowance(sweep: Sweep, runs: Iterable[SweptRun]) -> Callable[[PlannedRun, State], bool]:
    """Return what says whether a run may start: not if it would need more than the budget has left."""
    budget, names = sweep.budget, {each.run.name for each in runs}
    used = sum(len(each.run.seeds) * each.state.step for each in runs)

    def allow(run: PlannedRun, state: State) -> bool:
        nonlocal used
        need = len(run.seeds) * max(0, run.steps - state.step)
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
    """Hold the sweep for this process alone."""
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
    """Return whether `stop_sweep` ended the sweep, and nobody began it again."""
    return (sweep.folder / STOP).exists()


def stop_sweep(sweep: Sweep, seconds: float | None = None) -> bool:
    """Ask the process that runs a sweep to let its runs save and stop, and wait until it has.

    Args:
        sweep: The sweep.
        seconds: How long to wait at most; until it has ended if None.

    Returns:
        Whether it has ended. A sweep that does not run is refused.
    """
    if not is_running(sweep):
        raise InputError(f"the sweep {sweep.name} is not running, so there is nothing to stop")
    deadline = None if seconds is None else time.monotonic() + seconds
    while is_running(sweep):
        (sweep.folder / STOP).touch()  # again and again: one that has just begun forgets what it finds
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
