"""Jobs as arrays of SLURM, a task for each job.

A task goes on when the process that asked for it is gone; the same jobs later find it and wait for it. A task that was
preempted, lost its node or reached its time limit is started again, and its run goes on from what was saved. How a job
ended is in a file beside the script of its array, because not every cluster keeps accounts.
"""

import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.queue.jobs import Finished, Job, KeepGoing
from drol.queue.schedule import BAD_INPUT, CANCELLED, run_jobs
from drol.storage import write_whole
from drol.training.signals import stop_requests

POLL_SECONDS = 5.0
STOP_SECONDS = 120.0  # that tasks get to save and end
LATE_SECONDS = 60.0  # until a file that a node wrote is seen by other nodes, or SLURM queues again what it took away
MOST_TASKS = 1000  # of an array, and under way at once, unless a number is given
LOSSES = 10  # times that a job may be lost before it has failed
LOST = 128 + signal.SIGKILL  # the exit code of such a job
WARNING_SECONDS = 120  # before its time limit, a task is told to save
NAME = "drol-"  # how the names of arrays begin
UNDER_WAY = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT")
UNDER_WAY += ("REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESIZING", "RESV_DEL_HOLD")


@dataclass
class SlurmExecutor:
    """Does jobs as tasks of SLURM arrays.

    Args:
        processes: Jobs under way at once, those that wait in SLURM's queue included; 1,000 if None.
        retries: How often a job that failed is tried again; what SLURM took away is no failure.
        cores: Cores of each job.
        sbatch: More arguments of `sbatch`: account, partition, time, GPUs, memory, ...
    """

    processes: int | None = None
    retries: int = 0
    cores: int = 1
    sbatch: str = ""

    def __post_init__(self) -> None:
        if self.processes is not None:
            check_at_least("processes", self.processes, 1)
        check_at_least("retries", self.retries, 0)
        check_at_least("cores", self.cores, 1)

    def execute(
        self, jobs: Iterable[Job], on_finished: Callable[[Finished], None], keep_going: KeepGoing = lambda: True
    ) -> None:
        try:
            flags = shlex.split(self.sbatch)
        except ValueError as error:
            raise InputError(f"sbatch is {self.sbatch!r}, which cannot be split into words ({error})") from error
        for command in ("sbatch", "squeue", "scancel"):
            if shutil.which(command) is None:
                raise InputError(f"the executor slurm needs `{command}`, which is not on the PATH of this machine")
        with stop_requests() as stop:
            workers = SlurmWorkers(self.processes, self.cores, flags)
            run_jobs(jobs, workers, on_finished, self.retries, lambda: stop.signal is None and keep_going())
        if stop.signal is not None:
            raise KeyboardInterrupt(stop.signal)


def call(*command: str) -> str:
    """Run a command of SLURM and return what it printed; one that fails is answered with its own words."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        words = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise InputError(f"{command[0]} failed ({words})")
    return answer.stdout


def encoded(job: Job) -> str:
    """Return a job as a task gets it."""
    lock = None if job.lock is None else str(job.lock.absolute())
    return json.dumps({"name": job.name, "commands": job.commands, "log": str(job.log.absolute()), "lock": lock})


def decoded(text: str) -> Job:
    values = json.loads(text)
    lock = None if values["lock"] is None else Path(values["lock"])
    return Job(values["name"], tuple(map(tuple, values["commands"])), Path(values["log"]), lock)


def code_file(folder: Path, number: int) -> Path:
    """Return where a task writes how its job ended."""
    return folder / f"{number}.code"


def seconds_file(folder: Path, number: int) -> Path:
    """Return where a task writes, in a line each time that it ends or is taken away, how long it ran."""
    return folder / f"{number}.seconds"


def script_of(folder: Path, jobs: Sequence[Job], cores: int) -> str:
    """Return the script of an array; `exec`, because SLURM signals the process that it started and no other."""
    about = "# Each task does one run; it may be started again at any time."
    lines = ["#!/bin/sh", about, 'case "$SLURM_ARRAY_TASK_ID" in']
    lines += [f"{number}) job={shlex.quote(encoded(job))} ;;" for number, job in enumerate(jobs)]
    words = [sys.executable, "-m", "drol.queue.slurm_task", str(folder), str(cores)]
    return "\n".join([*lines, "esac", f'exec {shlex.join(words)} "$job"', ""])


@dataclass(frozen=True)
class Task:
    """A task of an array."""

    folder: Path  # of the array
    number: int
    array: str  # its number in SLURM

    @property
    def name(self) -> str:
        return f"{self.array}_{self.number}"


class SlurmWork:
    """A job under way in SLURM, or waiting there."""

    def __init__(self, job: Job, workers: "SlurmWorkers"):
        self.job, self.workers, self.cores = job, workers, workers.cores
        self.task: Task | None = None  # none yet: it goes into the next array
        self.losses, self.spent = 0, 0.0
        self.missing_since: float | None = None

    @property
    def seconds(self) -> float:
        if self.task is None:
            return self.spent
        try:
            return self.spent + sum(map(float, seconds_file(self.task.folder, self.task.number).read_text().split()))
        except (OSError, ValueError):
            return self.spent

    def poll(self) -> int | None:
        """Return the exit code of the job; hand one that SLURM took away in again."""
        if self.task is None:
            return None
        try:
            return int(code_file(self.task.folder, self.task.number).read_text())
        except (OSError, ValueError):
            pass
        state = self.workers.states.get(self.task.name)
        if state in UNDER_WAY:
            self.missing_since = None
            return None
        if state == "CANCELLED":
            return CANCELLED
        self.missing_since = self.missing_since or time.monotonic()
        if time.monotonic() - self.missing_since < LATE_SECONDS:
            return None  # its file may be late, and what was preempted is shown so for a moment before it waits again
        if state in (None, "COMPLETED", "FAILED") and not (self.task.folder / f"{self.task.number}.out").exists():
            return self.refuse(self.task)
        self.spent = self.seconds
        self.task, self.missing_since, self.losses = None, None, self.losses + 1
        if self.losses > LOSSES:
            return LOST
        self.workers.waiting.append(self)
        return None

    def refuse(self, task: Task) -> int:
        """Say of a task that ended without a word why it may have; another attempt would not be better."""
        with self.job.log.open("a") as log:
            log.write(
                f"drol: error: the task {task.name} of SLURM wrote nothing: its node does not see {task.folder}, or "
                f"has no {sys.executable}; the runs and drol must be on storage that all nodes share\n"
            )
        return BAD_INPUT

    def stop(self) -> None:
        if self.task is None:
            return
        subprocess.run(["scancel", self.task.name], capture_output=True, check=False)

    def wait(self) -> None:
        """Wait until SLURM has ended the task; it kills one that takes too long."""
        deadline = time.monotonic() + STOP_SECONDS
        while self.task and time.monotonic() < deadline and self.workers.states.get(self.task.name) in UNDER_WAY:
            time.sleep(1.0)
            self.workers.look()


class SlurmWorkers:
    """The queue of SLURM."""

    def __init__(self, processes: int | None = None, cores: int = 1, flags: Sequence[str] = ()):
        self.most, self.cores, self.flags = processes or MOST_TASKS, cores, flags
        self.works: list[SlurmWork] = []
        self.waiting: list[SlurmWork] = []  # for the next array
        self.states: dict[str, str] = {}
        self.found: dict[str, Task] | None = None  # that another process handed in; nobody has looked yet
        self.accepted = False  # an array: what SLURM refuses from now on, it may take later

    def has_room(self) -> bool:
        return len(self.works) < self.most

    def start(self, job: Job) -> SlurmWork:
        work = SlurmWork(job, self)
        self.works.append(work)
        if self.found is None:
            self.found = self.find(job.log.parent.absolute() / "slurm")
        work.task = self.found.pop(encoded(job), None)
        if work.task is None:
            self.waiting.append(work)
        return work

    def find(self, folder: Path) -> dict[str, Task]:
        """Return the tasks of arrays that were handed in before, by another process, and still are in the queue."""
        tasks = []
        for path in folder.glob("*/array.json"):
            try:
                values = json.loads(path.read_text())
                for number, text in enumerate(values["jobs"]):
                    if not code_file(path.parent, number).exists():
                        tasks.append((text, Task(path.parent, number, str(values["array"]))))
            except (OSError, ValueError, KeyError, TypeError):  # somebody changed it
                continue
        self.states |= states_of({f"{NAME}{task.folder.name}" for _, task in tasks})
        preempted = [(text, task) for text, task in tasks if self.states.get(task.name) == "PREEMPTED"]
        alive = [(text, task) for text, task in tasks if self.is_alive(task)]
        return dict([*preempted, *alive])  # a preempted one may come back; others were handed in again already

    def is_alive(self, task: Task) -> bool:
        """Return whether a task has not ended, or only just now."""
        return self.states.get(task.name) in UNDER_WAY or code_file(task.folder, task.number).exists()

    def release(self, work: SlurmWork) -> None:
        self.works.remove(work)

    def pause(self) -> None:
        with contextlib.suppress(*((InputError,) if self.accepted else ())):
            while self.waiting:
                self.submit(self.waiting[:MOST_TASKS])
        time.sleep(POLL_SECONDS)
        self.look()

    def submit(self, works: Sequence[SlurmWork]) -> None:
        """Hand in an array with a task for each of these jobs."""
        logs = works[0].job.log.parent.absolute()
        folder = logs / "slurm" / uuid.uuid4().hex[:12]
        folder.mkdir(parents=True)
        jobs = [work.job for work in works]
        script = folder / "array.sh"
        write_whole(script, script_of(folder, jobs, self.cores))
        words = ["sbatch", "--parsable", f"--job-name={NAME}{folder.name}", f"--array=0-{len(jobs) - 1}", "--ntasks=1"]
        words += [f"--cpus-per-task={self.cores}", "--requeue", "--open-mode=append", f"--output={folder}/%a.out"]
        words += [f"--signal=B:USR1@{WARNING_SECONDS}", *self.flags, str(script)]
        try:
            array = call(*words).strip().partition(";")[0]
        except InputError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        write_whole(folder / "array.json", json.dumps({"array": array, "jobs": [encoded(job) for job in jobs]}))
        self.accepted = True
        for number, work in enumerate(works):
            work.task = Task(folder, number, array)
            self.states[work.task.name] = "PENDING"
        del self.waiting[: len(works)]

    def look(self) -> None:
        """Ask SLURM how the tasks are; where it does not answer, nothing is known to have changed."""
        folders = {work.task.folder for work in self.works if work.task}
        try:
            self.states = states_of(f"{NAME}{folder.name}" for folder in folders)
        except InputError:  # a controller that is started again
            time.sleep(POLL_SECONDS)


def states_of(names: Iterable[str]) -> dict[str, str]:
    """Return the states of all tasks of arrays with these names, by their numbers; old ones SLURM has forgotten."""
    wanted = ",".join(names)
    if not wanted:
        return {}
    lines = call("squeue", "--noheader", "--array", "--states=all", f"--name={wanted}", "--format=%F_%K %T")
    return dict(line.split(None, 1) for line in lines.splitlines() if len(line.split()) == 2)
