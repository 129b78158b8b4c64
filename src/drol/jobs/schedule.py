"""The scheduling loop of all executors: start jobs, retry failed jobs, stop.

It does not depend on the type of executor: `Workers` are cores of this machine, places of a cluster, or a simulation.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from drol.jobs.job import Finished, Job, KeepGoing

BAD_INPUT = 2  # exit code for invalid input; not retried
CANCELLED = 128 + signal.SIGTERM  # exit code of a job that was cancelled on purpose; not retried


class Work(Protocol):
    """A job that was started."""

    @property
    def cores(self) -> int:
        """The number of cores that are reserved for it."""
        ...

    @property
    def seconds(self) -> float:
        """The seconds that it has run, without the time that it waited for resources."""
        ...

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        ...

    def stop(self) -> None:
        """Ask it to save and end."""
        ...

    def wait(self) -> None:
        """Wait until it has ended; kill it if that takes too long."""
        ...


AnyWork = TypeVar("AnyWork", bound=Work)


class Workers(Protocol[AnyWork]):
    """The resources of an executor."""

    def has_room(self) -> bool:
        """Return whether one more job may start now; always True while no job runs."""
        ...

    def start(self, job: Job) -> AnyWork: ...

    def release(self, work: AnyWork) -> None:
        """Release the resources of a job that has ended."""
        ...

    def pause(self) -> None:
        """Wait until the next poll."""
        ...


@dataclass
class Attempt(Generic[AnyWork]):
    """One attempt at a job."""

    job: Job
    number: int
    before: float  # seconds of the earlier attempts
    work: AnyWork


def run_jobs(
    jobs: Iterable[Job],
    workers: Workers[AnyWork],
    on_finished: Callable[[Finished], None],
    retries: int = 0,
    keep_going: KeepGoing = lambda: True,
) -> None:
    """Execute jobs until all have ended or `keep_going` returns False; running jobs then save and stop.

    A failed job is retried at most `retries` times, after all other jobs have started. Jobs with invalid input and
    cancelled jobs (SIGTERM) are not retried.

    Args:
        jobs: The jobs. The next one is taken when there is room for it. An exhausted iterator is asked again after
            other jobs have ended, because these may have added jobs.
        workers: The resources that execute the jobs.
        on_finished: Called once for each job that succeeded or failed in its last attempt.
        retries: How often a failed job is retried.
        keep_going: Called at every poll; once it returns False, no further job is started.
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
                if code and not keep_going():  # the stop also ended the job, which saved and can resume later
                    continue
                if code not in (0, BAD_INPUT, CANCELLED) and each.number <= retries:
                    again.append((each.job, each.number + 1, seconds))
                else:
                    job = each.job
                    on_finished(Finished(job.name, code, seconds, job.log, each.number, each.work.cores))
    finally:  # after a stop or an error, all running jobs save and stop
        for each in running:
            each.work.stop()
        for each in running:
            each.work.wait()
