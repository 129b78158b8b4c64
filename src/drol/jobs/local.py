"""Execute jobs as processes on this machine, pinned to cores, as many at once as cores and memory allow."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drol.bounds import check_at_least
from drol.errors import CORRUPTED_FILES
from drol.jobs.job import Finished, Job, KeepGoing
from drol.jobs.schedule import run_jobs
from drol.machine import free_memory, session_memory
from drol.stop_signals import stop_requests

POLL_SECONDS = 0.5
MEASURE_SECONDS = 2.0  # between two measurements of the memory of all jobs
STAGGER_SECONDS = 2.0  # between two starts, until the first job has ended and its peak memory is known
STOP_SECONDS = 120.0  # time for a job to save before it is killed
SPARE = 1.1  # free memory required to start a job, as a multiple of the peak memory of any job so far


@dataclass
class LocalExecutor:
    """Execute jobs as processes on this machine.

    The number of cores per job does not depend on the number of jobs, because the last bits of a run may depend on it.

    Args:
        processes: Concurrent jobs, if memory allows; one per core if None. Use 1 on a machine with an accelerator.
        retries: How often a failed job is retried.
    """

    processes: int | None = None
    retries: int = 0

    def __post_init__(self) -> None:
        if self.processes is not None:
            check_at_least("processes", self.processes, 1)
        check_at_least("retries", self.retries, 0)

    def execute(
        self, jobs: Iterable[Job], on_finished: Callable[[Finished], None], keep_going: KeepGoing = lambda: True
    ) -> None:
        workers = LocalWorkers(self.processes)
        with stop_requests() as stop:
            run_jobs(jobs, workers, on_finished, self.retries, lambda: stop.signal is None and keep_going())
        if stop.signal is not None:
            raise KeyboardInterrupt(stop.signal)


class LocalWork:
    """A running job: a process on some cores."""

    def __init__(self, job: Job, pinned: set[int]):
        self.job, self.pinned, self.cores = job, pinned, len(pinned)
        self.memory = 0  # bytes, as last measured
        self.began = time.monotonic()
        job.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "drol.jobs.child_process", str(os.getpid()), *job.arguments]
        with job.log.open("a") as log:  # a separate session: Ctrl-C in a terminal must not reach the job directly
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):  # the process has already ended
                os.sched_setaffinity(self.process.pid, pinned)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def poll(self) -> int | None:
        """Return the exit code of the job; None while it runs."""
        code = self.process.poll()
        return 0 if code == CORRUPTED_FILES else code  # the log names the quarantined files

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LocalWorkers:
    """Schedule jobs by the free cores and the free memory of this machine; measure the memory of running jobs."""

    def __init__(self, processes: int | None = None):
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
        count = processes or len(cores)
        share = max(1, len(cores) // count)
        self.free = [set(cores[share * number % len(cores) :][:share]) for number in range(count)]
        self.running: list[LocalWork] = []
        self.most = 0  # peak memory of any job so far, in bytes
        self.any_ended = False
        self.last_start = self.last_measured = -float("inf")

    def has_room(self) -> bool:
        if not self.running or not self.free:
            return bool(self.free)
        if not self.any_ended and time.monotonic() - self.last_start < STAGGER_SECONDS:
            return False
        free = free_memory()
        growing = sum(max(0, self.most - each.memory) for each in self.running)
        return free is None or free - growing >= SPARE * self.most

    def start(self, job: Job) -> LocalWork:
        self.last_start = time.monotonic()
        work = LocalWork(job, self.free.pop(0))
        self.running.append(work)
        return work

    def release(self, work: LocalWork) -> None:
        self.running.remove(work)
        self.free.append(work.pinned)
        self.any_ended = True

    def pause(self) -> None:
        time.sleep(POLL_SECONDS)
        if time.monotonic() - self.last_measured > MEASURE_SECONDS:
            self.measure()

    def measure(self) -> None:
        """Measure the memory of each running job, including the processes of its environments."""
        self.last_measured = time.monotonic()
        taken = session_memory()
        for each in self.running:
            each.memory = taken.get(each.process.pid, 0)
            self.most = max(self.most, each.memory)
