"""Do planned runs through an executor, telling how far they are and keeping how long they took."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from drol.paper.planned import CANDIDATES, PlannedRun, State
from drol.progress import Report
from drol.queue.jobs import Executor, Finished, Job, KeepGoing, Timing, append_timing
from drol.runs.directory import RunDirectory

SHOW_SECONDS = 5.0  # between two looks at how far the runs under way are


class Jobs(Iterator[Job]):
    """Jobs that are made when they are taken; where there is none now, there may be one later."""

    def __init__(self, make: Callable[[], Job | None]):
        self.make = make

    def __next__(self) -> Job:
        job = self.make()
        if job is None:
            raise StopIteration
        return job


def execute_runs(
    states: Sequence[tuple[PlannedRun, State]],
    root: Path,
    executor: Executor,
    report: Report | None = None,
    imports: Iterable[str] = (),
    allow: Callable[[PlannedRun, State], bool] = lambda *_: True,
    on_finished: Callable[[PlannedRun, Finished], Sequence[PlannedRun] | None] = lambda *_: None,
    keep_going: KeepGoing = lambda: True,
    track: str | None = None,
) -> list[Finished]:
    """Do the runs that are neither done nor trained by another process now.

    Args:
        states: The runs and how far they are.
        root: Where the runs are kept.
        executor: What does the jobs.
        report: Called as `report(done, total, what)`, in updates of a seed.
        imports: Modules that each command imports first.
        allow: Asked before each run starts; once it refuses, none of the rest is started.
        on_finished: Called with each run whose job ended; it may return runs to be done next, such as the same one for
            more steps, which are among the `states` already.
        keep_going: Called now and then; False stops what is under way, which saves first.
        track: The tracker that mirrors the rows of each run.

    Returns:
        How each job ended. One that failed does not stop the others.
    """
    todo = deque((run, state) for run, state in states if not state.done and not state.running)
    under_way: dict[str, tuple[PlannedRun, State]] = {}
    total, done = (sum(getattr(state, name) for _, state in states) for name in ("steps", "step"))
    ended: list[Finished] = []
    last_shown = time.monotonic()

    def next_job() -> Job | None:
        run, state = todo.popleft() if todo else (None, None)
        if run is None or state is None or not allow(run, state):
            todo.clear()
            return None
        under_way[run.name] = run, state
        return run.job(root, imports, track)

    def note(finished: Finished) -> None:
        nonlocal done, total
        run, before = under_way.pop(finished.name)
        updates = run.state(root).step - before.step
        done += updates
        ended.append(finished)
        failed = finished.code != 0
        if failed or updates > 0:
            timing = (len(run.seeds), updates, round(finished.seconds, 1), run.name, finished.cores, failed)
            append_timing(root, Timing(run.preset, run.task, run.method, run.changes.get(CANDIDATES), *timing))
        for more in on_finished(run, finished) or ():
            todo.append((more, more.state(root)))
            total += more.steps - todo[-1][1].step
        if report:
            words = "" if finished.code == 0 else f" failed with exit code {finished.code}, see {finished.log}"
            report(done, total, f"{finished.name}{words}")

    def look() -> bool:
        nonlocal last_shown
        if report and time.monotonic() - last_shown > SHOW_SECONDS:
            more = sum(max(0, logged_step(run, root) - before.step) for run, before in under_way.values())
            report(done + more, total, f"{len(under_way)} runs under way")
            last_shown = time.monotonic()
        return keep_going()

    if report:
        report(done, total, f"{len(todo)} runs to do")
    executor.execute(Jobs(next_job), note, look)
    return ended


def logged_step(run: PlannedRun, root: Path) -> int:
    """Return the last step of which a run has logged metrics: closer to where it is than its checkpoints."""
    rows = RunDirectory(root / run.name).read_metrics()
    return min(rows[-1].step, run.steps) if rows else 0
