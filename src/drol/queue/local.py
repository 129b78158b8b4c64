"""Jobs as processes of this machine, each on cores of its own, as many as cores and memory allow."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drol.bounds import check_at_least
from drol.errors import DAMAGE_SET_ASIDE
from drol.machine import free_memory, session_memory
from drol.queue.jobs import Finished, Job, KeepGoing
from drol.queue.schedule import run_jobs
from drol.training.signals import stop_requests

POLL_SECONDS = 0.5
MEASURE_SECONDS = 2.0  # between two looks at the memory of all jobs
STAGGER_SECONDS = 2.0  # between two starts, until a job has ended and what it takes is known
STOP_SECONDS = 120.0  # that a job gets to save before it is killed
SPARE = 1.1  # memory that must be free for another job, over the most that one has taken so far


@dataclass
class LocalExecutor:
    """Does jobs as processes of this machine.

    A job has the same number of cores however many jobs there are, because the last bits of a run may depend on it.

    Args:
        processes: Jobs at once, if memory allows; one for each core if None. On a machine with an accelerator give 1.
        retries: How often a job that failed is tried again.
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
    """A job under way: its present command is a process that runs on some cores."""

    def __init__(self, job: Job, pinned: set[int]):
        self.job, self.pinned, self.cores = job, pinned, len(pinned)
        self.waiting = list(job.commands)
        self.memory = 0  # bytes that it took when they were last measured
        self.began = time.monotonic()
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self.next_command()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def next_command(self) -> None:
        command = [sys.executable, "-m", "drol.queue.child", str(os.getpid()), *self.waiting.pop(0)]
        with self.job.log.open("a") as log:  # a session of its own, so that Ctrl-C in a terminal reaches it only once
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                os.sched_setaffinity(self.process.pid, self.pinned)

    def poll(self) -> int | None:
        """Return the exit code of the job; start its next command if the last one went well."""
        code = self.process.poll()
        if code in (0, DAMAGE_SET_ASIDE) and self.waiting:
            self.next_command()
            return None
        return 0 if code == DAMAGE_SET_ASIDE else code  # the log says what was damaged

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
    """The cores of this machine, and its memory: what a job takes is measured, not guessed."""

    def __init__(self, processes: int | None = None):
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
        count = processes or len(cores)
        share = max(1, len(cores) // count)
        self.free = [set(cores[share * number % len(cores) :][:share]) for number in range(count)]
        self.running: list[LocalWork] = []
        self.most = 0  # bytes that any job has taken so far
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
        """Note what each job takes now, the processes of its environments included."""
        self.last_measured = time.monotonic()
        taken = session_memory()
        for each in self.running:
            each.memory = taken.get(each.process.pid, 0)
            self.most = max(self.most, each.memory)
