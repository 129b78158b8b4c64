"""Execute jobs as SLURM arrays, one task per job.

Tasks outlive the driver; a restarted driver with the same jobs re-attaches to them. A task that was preempted, lost
its node or reached its time limit is started again, and its run resumes from the last checkpoint. Each task writes its
exit code to a file beside the script of its array, because not every cluster has accounting enabled.
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
from drol.jobs.job import Finished, Job, KeepGoing
from drol.jobs.schedule import BAD_INPUT, CANCELLED, run_jobs
from drol.stop_signals import stop_requests
from drol.storage import write_whole

POLL_SECONDS = 5.0
STOP_SECONDS = 120.0  # time for tasks to save and end
LATE_SECONDS = 60.0  # time until other nodes see a file that a node wrote, or SLURM requeues a preempted task
MOST_TASKS = 1000  # of an array, and by default also at once
LOSSES = 10  # lost tasks after which a job has failed
LOST = 128 + signal.SIGKILL  # the exit code of such a job
WARNING_SECONDS = 120  # this long before its time limit, a task gets a signal to save
NAME = "drol-"  # prefix of the names of arrays
UNDER_WAY = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT")
UNDER_WAY += ("REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESIZING", "RESV_DEL_HOLD")


@dataclass
class SlurmExecutor:
    """Execute jobs as tasks of SLURM arrays.

    Args:
        processes: Submitted jobs at once, including pending ones in SLURM's queue; 1,000 if None.
        retries: How often a failed job is retried; preemption and the loss of a node do not count as failures.
        cores: Cores of each job.
        sbatch: Further arguments of `sbatch`: account, partition, time, GPUs, memory, ...
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
    """Run a SLURM command and return its output; raise `InputError` with its error message if it fails."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        words = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise InputError(f"{command[0]} failed ({words})")
    return answer.stdout


def encoded(job: Job) -> str:
    """Encode a job as JSON, for the script of an array."""
    lock = None if job.lock is None else str(job.lock.absolute())
    return json.dumps({"name": job.name, "arguments": job.arguments, "log": str(job.log.absolute()), "lock": lock})


def decoded(text: str) -> Job:
    values = json.loads(text)
    lock = None if values["lock"] is None else Path(values["lock"])
    return Job(values["name"], tuple(values["arguments"]), Path(values["log"]), lock)


def code_file(folder: Path, number: int) -> Path:
    """Return the file to which a task writes the exit code of its job."""
    return folder / f"{number}.code"


def seconds_file(folder: Path, number: int) -> Path:
    """Return the file to which a task appends its running time, one line whenever it ends or is preempted."""
    return folder / f"{number}.seconds"


def script_of(folder: Path, jobs: Sequence[Job], cores: int) -> str:
    """Return the script of an array; it uses `exec`, because SLURM signals only the process that it started."""
    about = "# Each task does one run; it may be started again at any time."
    lines = ["#!/bin/sh", about, 'case "$SLURM_ARRAY_TASK_ID" in']
    lines += [f"{number}) job={shlex.quote(encoded(job))} ;;" for number, job in enumerate(jobs)]
    words = [sys.executable, "-m", "drol.jobs.slurm_task", str(folder), str(cores)]
    return "\n".join([*lines, "esac", f'exec {shlex.join(words)} "$job"', ""])


@dataclass(frozen=True)
class Task:
    """A task of an array."""

    folder: Path  # of the array
    number: int
    array: str  # SLURM's job number of the array

    @property
    def name(self) -> str:
        return f"{self.array}_{self.number}"


class SlurmWork:
    """A job that runs in SLURM or waits in its queue."""

    def __init__(self, job: Job, workers: "SlurmWorkers"):
        self.job, self.workers, self.cores = job, workers, workers.cores
        self.task: Task | None = None  # None: to be submitted with the next array
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
        """Return the exit code of the job, None if it has none yet; resubmit a job whose task was lost."""
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
            return None  # the file of the exit code may be delayed, or SLURM may be about to requeue a preempted task
        if state in (None, "COMPLETED", "FAILED") and not (self.task.folder / f"{self.task.number}.out").exists():
            return self.refuse(self.task)
        self.spent = self.seconds
        self.task, self.missing_since, self.losses = None, None, self.losses + 1
        if self.losses > LOSSES:
            return LOST
        self.workers.waiting.append(self)
        return None

    def refuse(self, task: Task) -> int:
        """Log the likely reason why a task ended without any output; return the code for input that is not retried."""
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
        """Wait until SLURM has ended the task; SLURM kills a task that takes too long."""
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
        self.found: dict[str, Task] | None = None  # tasks that another process submitted; None: not searched yet
        self.accepted = False  # whether SLURM accepted an array; from then on, a rejected submission is retried

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
        """Return the tasks that an earlier process submitted and that are still in the queue, by their encoded jobs."""
        tasks = []
        for path in folder.glob("*/array.json"):
            try:
                values = json.loads(path.read_text())
                for number, text in enumerate(values["jobs"]):
                    if not code_file(path.parent, number).exists():
                        tasks.append((text, Task(path.parent, number, str(values["array"]))))
            except (OSError, ValueError, KeyError, TypeError):  # the file was modified
                continue
        self.states |= states_of({f"{NAME}{task.folder.name}" for _, task in tasks})
        preempted = [(text, task) for text, task in tasks if self.states.get(task.name) == "PREEMPTED"]
        alive = [(text, task) for text, task in tasks if self.is_alive(task)]
        # A preempted task may be requeued. If its job was already resubmitted, the task that is alive replaces it.
        return dict([*preempted, *alive])

    def is_alive(self, task: Task) -> bool:
        """Return whether a task has not ended, or ended just now."""
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
        """Submit an array with one task per job."""
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
        """Update the states of the tasks; keep the old states if SLURM does not answer."""
        folders = {work.task.folder for work in self.works if work.task}
        try:
            self.states = states_of(f"{NAME}{folder.name}" for folder in folders)
        except InputError:  # the controller may be restarting
            time.sleep(POLL_SECONDS)


def states_of(names: Iterable[str]) -> dict[str, str]:
    """Return the states of all tasks of the arrays with these names, by `ARRAY_TASK`; SLURM forgets old tasks."""
    wanted = ",".join(names)
    if not wanted:
        return {}
    lines = call("squeue", "--noheader", "--array", "--states=all", f"--name={wanted}", "--format=%F_%K %T")
    return dict(line.split(None, 1) for line in lines.splitlines() if len(line.split()) == 2)
