"""Jobs, their outcomes, the interface of an executor, and the recorded durations of runs."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from drol.decoding import read_json_lines
from drol.errors import plain
from drol.storage import append_whole

TIMINGS = "timings.jsonl"  # in the root: the duration of each run; the cost of other runs is estimated from these
LAST_LINES, LAST_BYTES = 3, 4096  # of a log, to explain why a job failed


@dataclass(frozen=True)
class Job:
    """A command of `drol` that executes one run, and a file for its output.

    The command is idempotent: it resumes an interrupted run and does nothing once the run is done.
    """

    name: str
    arguments: tuple[str, ...]  # of `drol`: `execute`, the file of the run, and the modules that the user imported
    log: Path
    lock: Path | None = None  # of the run's folder: locked by the process that trains the run


@dataclass(frozen=True)
class Finished:
    """The outcome of a job."""

    name: str
    code: int  # exit code; 0: done
    seconds: float  # of all attempts together
    log: Path
    attempts: int = 1
    cores: int = 1  # reserved for the job

    @property
    def reason(self) -> str:
        """The reason of the failure: the exit code and the last lines of the log."""
        return f"exit code {self.code} after {self.attempts} attempt{'s'[: self.attempts - 1]}: {last_lines(self.log)}"


KeepGoing = Callable[[], bool]  # called regularly while jobs run; False: all jobs save and stop


class Executor(Protocol):
    """The interface of an executor.

    `execute` takes the next job only when there is room for it, so `jobs` may be a generator. While jobs are running,
    it asks an exhausted `jobs` again after each job that ends.

    It returns when all jobs have ended, or have stopped because `keep_going` returned False. It raises
    `KeyboardInterrupt` if a signal stopped them. A stopped job does not count as failed and is not passed to
    `on_finished`; the same job resumes when it is executed again.
    """

    def execute(
        self, jobs: Iterable[Job], on_finished: Callable[[Finished], None], keep_going: KeepGoing = lambda: True
    ) -> None: ...


def last_lines(log: Path) -> str:
    """Return the last lines of a log, joined into one line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return "it has no log"
    return plain(" | ".join([line for line in lines if line][-LAST_LINES:])) or "its log is empty"


@dataclass(frozen=True)
class Timing:
    """The duration of a run on this machine, evaluations included."""

    scale: str
    task: str
    method: str
    candidates: int | None
    seeds: int
    updates: int
    seconds: float
    run: str = ""  # its name; empty in older files
    cores: int = 1
    failed: bool = False  # if True, the row counts as cost but not for estimates

    @property
    def core_hours(self) -> float:
        return self.cores * self.seconds / 3600


def append_timing(root: Path, timing: Timing) -> None:
    append_whole(root / TIMINGS, json.dumps(asdict(timing)) + "\n")


def read_timings(root: Path) -> list[Timing]:
    """Return the recorded durations of the runs below a root."""
    return read_json_lines(root / TIMINGS, Timing)
