"""What a queue is made of: jobs, how they ended, what an executor is, and how long runs took."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from drol.errors import InputError, plain
from drol.storage import append_whole

TIMINGS = "timings.jsonl"  # in the root: how long each run took, from which the cost of the others is told
LAST_LINES, LAST_BYTES = 3, 4096  # of a log, that say why a job failed


@dataclass(frozen=True)
class Job:
    """The commands of one run, to be done one after another, and a file for what they print.

    Each command is a list of arguments of `drol` and may be given again: it goes on where it was cut, and does
    nothing that is done.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    log: Path
    lock: Path | None = None  # of the run's folder: held by whoever trains it


@dataclass(frozen=True)
class Finished:
    """How a job ended."""

    name: str
    code: int  # 0: done
    seconds: float  # of all attempts
    log: Path
    attempts: int = 1
    cores: int = 1  # that it had to itself

    @property
    def reason(self) -> str:
        """Why it failed: the last lines of its log."""
        return f"exit code {self.code} after {self.attempts} attempt{'s'[: self.attempts - 1]}: {last_lines(self.log)}"


KeepGoing = Callable[[], bool]  # called now and then while jobs run; False: let each save and stop


class Executor(Protocol):
    """What does jobs. It takes the next one when it has room for it, so that jobs may be made as they are taken, and
    looks for more after one has ended, as long as others are under way.

    It returns when all have ended, or were stopped because `keep_going` said so, and raises `KeyboardInterrupt` if a
    signal stopped them. What was stopped is not finished: it is nobody's failure, and the same job goes on later.
    """

    def execute(
        self, jobs: Iterable[Job], on_finished: Callable[[Finished], None], keep_going: KeepGoing = lambda: True
    ) -> None: ...


def last_lines(log: Path) -> str:
    """Return the last lines of a log, as one; they say why a job failed."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return "it has no log"
    return plain(" | ".join([line for line in lines if line][-LAST_LINES:])) or "its log is empty"


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
    run: str = ""  # its name; empty in files that are older than names
    cores: int = 1
    failed: bool = False  # then it only tells what was spent

    @property
    def core_hours(self) -> float:
        return self.cores * self.seconds / 3600


def append_timing(root: Path, timing: Timing) -> None:
    append_whole(root / TIMINGS, json.dumps(asdict(timing)) + "\n")


def read_timings(root: Path) -> list[Timing]:
    """Return how long the runs of a root took so far."""
    path = root / TIMINGS
    try:
        return [Timing(**json.loads(line)) for line in path.read_text().splitlines()] if path.is_file() else []
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} has a line that is no timing ({error}); remove that line") from error
