"""`drol paper run` as a queue under the storm: it, or the run that it has under way, is killed or stopped."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from run_folders import files

from storm.run_state import differences
from storm.tally import Count, Tally
from storm.trial import Wrong

ARGUMENTS = ["paper", "run", "fig2", "--scale", "smoke", "--seeds", "2", "--seeds-per-run", "1", "--processes", "1"]
BOTH, QUEUE, RUN, STOP = (
    "kill -9 of a queue and its run",
    "kill -9 of a queue",
    "kill -9 of a queue's run",
    "SIGTERM to a queue",
)
QUEUE_FAULTS = (BOTH, QUEUE, RUN, STOP)
FEWEST, MOST = 3, 5  # faults in one queue
LONGEST = 900.0  # seconds


class QueueTrial:
    """A queue of two runs, started again until both are done.

    Args:
        folder: For the runs and for what the queue prints.
        expected: The same for the undisturbed queue, which is made if it is not there.
        dice: What chooses the faults.
        tally: Where they are counted.
        allowed: The faults to choose from.
        end: When faults are to end, in the time of `time.monotonic`.
    """

    name = "drol paper run, 2 runs"

    def __init__(
        self, folder: Path, expected: Path, dice: random.Random, tally: Tally, allowed: tuple[str, ...], end: float
    ):
        self.folder, self.expected, self.dice, self.tally, self.end = folder, expected, dice, tally, end
        self.allowed = [fault for fault in QUEUE_FAULTS if fault in allowed]
        self.starts = 0
        self.counts: list[Count] = []
        folder.mkdir(parents=True)

    def weather(self) -> None:
        """Disturb the queue until it has finished, then compare its runs; raise `Wrong` with what is wrong."""
        if not self.expected.exists():
            self.expected.mkdir(parents=True)
            if start(self.expected, self.expected / "queue.log").wait(LONGEST) != 0:
                raise Wrong(f"the undisturbed queue failed, see {self.expected / 'queue.log'}")
        try:
            left = self.dice.randint(FEWEST, MOST)
            while not self.finished_by(self.dice.choice(self.allowed) if self.may_go_on(left) else None):
                left -= 1
                if self.starts > 60:
                    raise Wrong(f"not finished after {self.starts} starts")
            self.compare()
        except Wrong:
            for count in self.counts:
                count.wrong += 1
            raise
        for count in self.counts:
            count.survived += 1
        self.tally.runs[self.name] += 1

    def may_go_on(self, left: int) -> bool:
        return left > 0 and bool(self.allowed) and time.monotonic() < self.end

    def finished_by(self, fault: str | None) -> bool:
        """Start the queue, let a fault happen to it, and return whether all of its runs are done."""
        self.starts += 1
        log = self.folder / f"{self.starts:03d}.log"
        queue = start(self.folder, log)
        if fault:
            self.disturb(queue, fault)
        code = queue.wait(LONGEST)
        if fault is None and code not in (0, 1):
            raise Wrong(f"exit code {code} of the queue, see {log}")
        if "Traceback" in log.read_text():
            raise Wrong(f"a traceback, see {log}")
        if fault == QUEUE or code == 1:
            self.wait_for_runs()
        return code == 0

    def disturb(self, queue: subprocess.Popen, fault: str) -> None:
        """Wait until a run is under way, and a while longer, then kill or stop."""
        end = time.monotonic() + LONGEST
        while queue.poll() is None and not (runs := children(queue.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        with contextlib.suppress(subprocess.TimeoutExpired):
            queue.wait(self.dice.uniform(0, 12))
        runs = children(queue.pid) or runs if queue.poll() is None else []
        if not runs:
            return
        count = self.tally.count(fault, self.name)
        count.injected += 1
        self.counts.append(count)
        if fault == STOP:
            queue.send_signal(signal.SIGTERM)
        if fault in (QUEUE, BOTH):
            queue.kill()
        for pid in runs if fault in (RUN, BOTH) else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_for_runs(self) -> None:
        """Wait until no run of a queue that was killed is under way."""
        end = time.monotonic() + LONGEST
        while any(str(self.folder) in command for command in commands()) and time.monotonic() < end:
            time.sleep(0.2)

    def compare(self) -> None:
        """Compare every run with the same run of the undisturbed queue."""
        runs = sorted(path.parent.relative_to(self.expected) for path in self.expected.rglob("config.json"))
        for run in runs:
            problems = differences(self.folder / run, self.expected / run, 0, ())
            if problems:
                raise Wrong(f"{run}: {'; '.join(problems)}")
            self.tally.files[self.name] += len(files(self.folder / run))


def start(root: Path, log: Path) -> subprocess.Popen:
    with log.open("w") as file:
        command = [sys.executable, "-m", "drol.cli.main", *ARGUMENTS, "--root", str(root)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def commands() -> list[str]:
    """Return the command lines of all processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found
