"""Run what a plan still lacks, as processes of this machine; the same call again goes on where it was cut.

An executor is anything with `execute(jobs, on_finished)`: another one may hand the same jobs to a cluster.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from drol.bounds import check_at_least
from drol.errors import DAMAGE_SET_ASIDE, InputError
from drol.paper.reproduce.plan import Plan, PlannedRun
from drol.progress import Report
from drol.storage import append_whole
from drol.training.signals import stop_requests

TIMINGS = "timings.jsonl"  # in the root: how long each run took, from which the cost of the others is told
POLL_SECONDS = 0.5
STOP_SECONDS = 120.0  # that a run gets to save before it is killed


@dataclass(frozen=True)
class Job:
    """The commands of one run, to be done one after another, and a file for what they print."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    log: Path


@dataclass(frozen=True)
class Finished:
    """How a job ended."""

    name: str
    code: int  # 0: done
    seconds: float
    log: Path


class Executor(Protocol):
    """What runs jobs. It returns when all have ended, and raises `KeyboardInterrupt` if a signal stopped it before."""

    def execute(self, jobs: Sequence[Job], on_finished: Callable[[Finished], None]) -> None: ...


@dataclass
class LocalExecutor:
    """Runs jobs as processes of this machine, each on cores of its own.

    Args:
        processes: Jobs at once; one for each core if None. On a machine with an accelerator give 1.
    """

    processes: int | None = None

    def __post_init__(self) -> None:
        if self.processes is not None:
            check_at_least("processes", self.processes, 1)

    def execute(self, jobs: Sequence[Job], on_finished: Callable[[Finished], None]) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
        count = min(self.processes or len(cores), len(jobs))
        share = max(1, len(cores) // max(count, 1))
        free = [set(cores[share * number % len(cores) :][:share]) for number in range(count)]
        waiting, running = list(jobs), []
        with stop_requests() as stop:
            try:
                while (waiting or running) and stop.signal is None:
                    while waiting and free:
                        running.append(Running(waiting.pop(0), free.pop(0)))
                    time.sleep(POLL_SECONDS)
                    for each in [each for each in running if each.poll()]:
                        running.remove(each)
                        free.append(each.cores)
                        on_finished(each.finished())
            finally:  # a signal, or an error: let each save and stop
                for each in running:
                    each.stop()
                for each in running:
                    each.wait()
        if stop.signal is not None:
            raise KeyboardInterrupt(stop.signal)


class Running:
    """A job under way: its present command is a process that runs on some cores."""

    def __init__(self, job: Job, cores: set[int]):
        self.job, self.cores = job, cores
        self.waiting = list(job.commands)
        self.started = time.monotonic()
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self.next_command()

    def next_command(self) -> None:
        command = [sys.executable, "-m", "drol.cli.main", *self.waiting.pop(0)]
        with self.job.log.open("a") as log:  # a session of its own, so that Ctrl-C in a terminal reaches it only once
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, self.cores)

    def poll(self) -> bool:
        """Return whether the job has ended; start its next command if the last one went well."""
        code = self.process.poll()
        if code in (0, DAMAGE_SET_ASIDE) and self.waiting:
            self.next_command()
            return False
        return code is not None

    def finished(self) -> Finished:
        code = self.process.returncode
        code = 0 if code == DAMAGE_SET_ASIDE else code  # the log says what was damaged
        return Finished(self.job.name, code, time.monotonic() - self.started, self.job.log)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def execute(plan: Plan, executor: Executor | None = None, report: Report | None = None) -> list[Finished]:
    """Run what a plan still lacks.

    Args:
        plan: What `make_plan` returned.
        executor: What runs the jobs; processes of this machine, one for each core, if None.
        report: Called as `report(done, total, what)`, in updates, after each run.

    Returns:
        How each job ended. One that failed does not stop the others; its log says why.
    """
    states = {each.name: (each, state) for each, state in plan.states()}
    jobs = [make_job(each, plan.root) for each, state in states.values() if not state.done and not state.running]
    total = sum(state.steps for _, state in states.values())
    done = sum(state.step for _, state in states.values())
    ended: list[Finished] = []

    def on_finished(finished: Finished) -> None:
        nonlocal done
        run, before = states[finished.name]
        after = run.state(plan.root)
        done += after.step - before.step
        ended.append(finished)
        if finished.code == 0:
            append_timing(plan.root, run, after.step - before.step, finished.seconds)
        if report:
            words = "" if finished.code == 0 else f" failed with exit code {finished.code}, see {finished.log}"
            report(done, total, f"{finished.name}{words}")

    if report:
        report(done, total, f"{len(jobs)} runs to do")
    (executor or LocalExecutor()).execute(jobs, on_finished)
    return ended


def execute_all(
    make: Callable[[], Plan], executor: Executor | None = None, report: Report | None = None
) -> tuple[Plan, list[Finished]]:
    """Run a plan, and what is added to it by its own results: the runs of DROL* when its K is known.

    Args:
        make: A function that makes the plan, such as `lambda: make_plan("table1", "small")`.
        executor: As in `execute`.
        report: As in `execute`.

    Returns:
        The last plan and how each job ended; a job that failed ends it after the others of its plan.
    """
    plan, ended = make(), []
    while True:
        ended += execute(plan, executor, report)
        before, plan = plan, make()
        if any(each.code for each in ended) or not plan.unfinished() or plan.runs == before.runs:
            return plan, ended


def make_job(run: PlannedRun, root: Path) -> Job:
    commands = tuple(tuple([*each, "--quiet"] if each[0] == "train" else each) for each in run.commands(root))
    return Job(run.name, commands, root / "logs" / f"{run.name.replace('/', '_')}.log")


@dataclass(frozen=True)
class Timing:
    """How long a run took on this machine, with its evaluations."""

    scale: str
    task: str
    method: str
    candidates: int | None
    seeds: int
    updates: int
    seconds: float


def append_timing(root: Path, run: PlannedRun, updates: int, seconds: float) -> None:
    if updates > 0:
        candidates = run.changes.get("num_candidates")
        row = Timing(run.scale, run.task, run.method, candidates, len(run.seeds), updates, round(seconds, 1))
        append_whole(root / TIMINGS, json.dumps(asdict(row)) + "\n")


def read_timings(root: Path) -> list[Timing]:
    """Return how long the runs of a root took so far."""
    path = root / TIMINGS
    try:
        return [Timing(**json.loads(line)) for line in path.read_text().splitlines()] if path.is_file() else []
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} has a line that is no timing ({error}); remove that line") from error
