"""Execute planned runs, report their progress and record their durations."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from drol.errors import counted
from drol.jobs.job import Executor, Finished, Job, KeepGoing, Timing, append_timing
from drol.planning.planned_run import CANDIDATES, PlannedRun, RunStatus
from drol.progress import Report
from drol.runs.directory import RunDirectory

SHOW_SECONDS = 5.0  # between two progress reports


class Jobs(Iterator[Job]):
    """An iterator that makes each job when it is taken; after `StopIteration` it may return jobs again."""

    def __init__(self, make: Callable[[], Job | None]):
        self.make = make

    def __next__(self) -> Job:
        job = self.make()
        if job is None:
            raise StopIteration
        return job


def execute_runs(
    statuses: Sequence[tuple[PlannedRun, RunStatus]],
    root: Path,
    executor: Executor,
    report: Report | None = None,
    imports: Iterable[str] = (),
    allow: Callable[[PlannedRun, RunStatus], bool] = lambda *_: True,
    on_finished: Callable[[PlannedRun, Finished], Sequence[PlannedRun] | None] = lambda *_: None,
    keep_going: KeepGoing = lambda: True,
    track: str | None = None,
) -> list[Finished]:
    """Execute the runs that are neither done nor being trained by another process.

    Args:
        statuses: The runs with their status.
        root: The folder of the runs.
        executor: Executes the jobs.
        report: Called as `report(done, total, what)`, in updates of a seed.
        imports: Modules that the process of each run imports first.
        allow: Called before each run starts; once it returns False, no further run starts.
        on_finished: Called with each run whose job ended. It may return runs to execute next, such as the same run
            with more steps; their names are already in `statuses`.
        keep_going: Called regularly; if it returns False, all running jobs save and stop.
        track: The tracker that mirrors the rows of each run.

    Returns:
        The outcome of each job. A failed job does not stop the others.
    """
    todo = deque((run, status) for run, status in statuses if not status.done and not status.running)
    under_way: dict[str, tuple[PlannedRun, RunStatus]] = {}
    total, done = (sum(getattr(status, name) for _, status in statuses) for name in ("steps", "step"))
    ended: list[Finished] = []
    last_shown = time.monotonic()

    def next_job() -> Job | None:
        run, status = todo.popleft() if todo else (None, None)
        if run is None or status is None or not allow(run, status):
            todo.clear()
            return None
        under_way[run.name] = run, status
        return run.job(root, imports, track)

    def note(finished: Finished) -> None:
        nonlocal done, total
        run, before = under_way.pop(finished.name)
        updates = run.status(root).step - before.step
        done += updates
        ended.append(finished)
        failed = finished.code != 0
        if failed or updates > 0:
            timing = (len(run.seeds), updates, round(finished.seconds, 1), run.name, finished.cores, failed)
            append_timing(root, Timing(run.preset, run.task, run.method, run.changes.get(CANDIDATES), *timing))
        for more in on_finished(run, finished) or ():
            todo.append((more, more.status(root)))
            total += more.steps - todo[-1][1].step
        if report:
            words = "" if finished.code == 0 else f" failed with exit code {finished.code}, see {finished.log}"
            report(done, total, f"{finished.name}{words}{failures()}")

    def under_way_words(updates: int) -> str:
        at_end = all(logged_step(run, root) >= run.steps for run, _ in under_way.values())
        state = ", evaluating" if at_end else "" if updates else ", starting"
        return f"{counted(len(under_way), 'run')} under way{state}{failures()}"

    def failures() -> str:
        failed = sum(each.code != 0 for each in ended)
        return f", {failed} failed" if failed else ""

    def look() -> bool:
        nonlocal last_shown
        if report and time.monotonic() - last_shown > SHOW_SECONDS:
            more = sum(max(0, logged_step(run, root) - before.step) for run, before in under_way.values())
            report(done + more, total, under_way_words(more))
            last_shown = time.monotonic()
        return keep_going()

    if report:
        report(done, total, f"{counted(len(todo), 'run')} to do")
    executor.execute(Jobs(next_job), note, look)
    return ended


def logged_step(run: PlannedRun, root: Path) -> int:
    """Return the last step with logged metrics; it is closer to the current step than the last checkpoint."""
    rows = RunDirectory(root / run.name).read_metrics()
    return min(rows[-1].step, run.steps) if rows else 0
