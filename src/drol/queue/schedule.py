"""The schedule of every executor: which job starts when, what is tried again, what a stop does.

It knows nothing of processes: `Workers` are cores of this machine, the slots of a cluster, or a simulation of them.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from drol.queue.jobs import Finished, Job, KeepGoing

BAD_INPUT = 2  # the exit code of input that another attempt does not make better
CANCELLED = 128 + signal.SIGTERM  # that of a job which somebody took away on purpose; whoever did does not want it back


class Work(Protocol):
    """A job under way, wherever that is."""

    @property
    def cores(self) -> int:
        """The number of cores that it has to itself."""
        ...

    @property
    def seconds(self) -> float:
        """The seconds that it has run; how long it waited for a place is not among them."""
        ...

    def poll(self) -> int | None:
        """Return its exit code; None while it goes on."""
        ...

    def stop(self) -> None:
        """Ask it to save and end."""
        ...

    def wait(self) -> None:
        """Wait until it has ended; end it if that takes too long."""
        ...


AnyWork = TypeVar("AnyWork", bound=Work)


class Workers(Protocol[AnyWork]):
    """What can do jobs."""

    def has_room(self) -> bool:
        """Return whether one more job may start now; always true while none is under way."""
        ...

    def start(self, job: Job) -> AnyWork: ...

    def release(self, work: AnyWork) -> None:
        """Take back what a job had that has ended."""
        ...

    def pause(self) -> None:
        """Let some time pass before anybody looks again."""
        ...


@dataclass
class Attempt(Generic[AnyWork]):
    """A job under way, for the first time or again."""

    job: Job
    number: int
    before: float  # seconds of the attempts before this one
    work: AnyWork


def run_jobs(
    jobs: Iterable[Job],
    workers: Workers[AnyWork],
    on_finished: Callable[[Finished], None],
    retries: int = 0,
    keep_going: KeepGoing = lambda: True,
) -> None:
    """Do jobs until all have ended or something says stop; those under way then save and stop.

    A job that fails is tried again after all others were started, `retries` times at most; bad input is not, and
    neither is one that got SIGTERM.

    Args:
        jobs: The jobs; the next one is taken when there is room for it. Where there is none, this is asked again after
            other jobs have ended: they may have added some.
        workers: What does them.
        on_finished: Called once for each job that ended, well or after its last attempt.
        retries: How often a job that failed is tried again.
        keep_going: Called at every look; once it returns False, nothing more is started.
    """
    jobs, again = iter(jobs), deque[tuple[Job, int, float]]()
    running: list[Attempt[AnyWork]] = []
    try:
        while keep_going():
            while workers.has_room():
                fresh = next(jobs, None)
                if fresh is None and not again:
                    break
                job, number, before = (fresh, 1, 0.0) if fresh is not None else again.popleft()
                running.append(Attempt(job, number, before, workers.start(job)))
            if not running:
                return
            workers.pause()
            for each in list(running):
                code = each.work.poll()
                if code is None:
                    continue
                running.remove(each)
                seconds = each.before + each.work.seconds
                workers.release(each.work)
                if code and not keep_going():  # whoever stops this told the job as well; it saved, and goes on later
                    continue
                if code not in (0, BAD_INPUT, CANCELLED) and each.number <= retries:
                    again.append((each.job, each.number + 1, seconds))
                else:
                    job = each.job
                    on_finished(Finished(job.name, code, seconds, job.log, each.number, each.work.cores))
    finally:  # a stop, or an error: let each save and stop
        for each in running:
            each.work.stop()
        for each in running:
            each.work.wait()
