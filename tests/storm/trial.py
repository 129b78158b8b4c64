"""One run under the storm: faults one after another until it has finished, then the comparison."""

import contextlib
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from run_folders import files

from storm.configurations import EVALUATION_INTERVAL, INTERVAL, Configuration
from storm.damage import DAMAGES, is_possible
from storm.processes import POLL_SECONDS, Command, Moment
from storm.run_state import differences, last_step, progress, saved_steps
from storm.tally import Count, Tally

RESUMED = re.compile(r"resuming .* at step ([\d,]+)")
KILLS = tuple(
    f"kill -9 {when}" for when in ("in start-up", "in rewind", "in a checkpoint", "in an evaluation", "by progress")
)
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
WORKERS = tuple(f"environment {what}" for what in ("killed", "stopped", "hung", "raises"))
HANGING = ("environment stopped", "environment hung")  # they do not notice when their run is killed
DISK_FULL = "disk full"
WEIGHTS = {KILLS: 0.72, SIGNALS: 0.12, WORKERS: 0.05, tuple(DAMAGES): 0.11}
EVERY_FAULT = (*KILLS, *SIGNALS, *WORKERS, *DAMAGES, DISK_FULL)
FEWEST, MOST = 12, 24  # faults in one run
FREE = (0, 2_000, 10_000, 40_000)  # bytes that a full disk has left


class Wrong(Exception):
    """Something that may not happen."""


class Undisturbed:
    """The run that nothing happens to, with which the others of its configuration are compared."""

    def __init__(self, configuration: Configuration, folder: Path):
        self.run = folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = Command(configuration.command(self.run), folder / "run.log")
        while command.poll() is None and not (self.run / "config.json").exists():
            time.sleep(POLL_SECONDS)
        self.startup = time.monotonic() - command.started  # seconds until it first writes
        if command.wait() != 0:
            raise Wrong(f"the undisturbed run failed, see {command.log}")
        again = Command(configuration.command(self.run), folder / "again.log")  # compiled programs are there now
        again.wait()
        self.startup = min(self.startup, time.monotonic() - again.started)


class Trial:
    """A run and the faults that it suffers.

    Args:
        configuration: The configuration of the run.
        expected: The undisturbed run.
        folder: For the run and for what its processes print.
        dice: What chooses the faults.
        tally: Where they are counted.
        allowed: The faults to choose from.
        full_disk: Fills the disk of the folder except for some bytes, until the context ends; None if impossible.
        end: When faults are to end, in the time of `time.monotonic`.
    """

    def __init__(
        self,
        configuration: Configuration,
        expected: Undisturbed,
        folder: Path,
        dice: random.Random,
        tally: Tally,
        allowed: tuple[str, ...],
        full_disk: Callable[[int], contextlib.AbstractContextManager] | None,
        end: float,
    ):
        self.configuration, self.expected, self.folder, self.dice, self.tally = (
            configuration,
            expected,
            folder,
            dice,
            tally,
        )
        self.run, self.orders = folder / "run", folder / "orders"
        self.allowed, self.full_disk, self.end = allowed, full_disk, end
        self.starts = 0
        self.counts: list[Count] = []  # of every fault that was injected
        self.unsettled: list[Count] = []  # of those after which no start has gone on yet
        self.reached, self.promise, self.loser = (
            0,
            0,
            None,
        )  # the furthest update, what may be lost of it, by which fault
        self.damaged: set[int] = set()  # steps of checkpoints that are not whole
        self.foreign: list[Path] = []
        self.lost_rows: list[tuple[str, int, int]] = []
        self.broken_environments = 0
        folder.mkdir(parents=True)

    def weather(self) -> None:
        """Inject faults until the run has finished, then compare it; raise `Wrong` with what is not as promised."""
        try:
            left = self.dice.randint(FEWEST, MOST)
            finished = False
            while not finished:
                left -= 1
                fault = self.choose() if left >= 0 and time.monotonic() < self.end else None
                finished = self.damage(fault) if fault in DAMAGES else self.start(fault)
            for path in self.foreign:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            problems = differences(self.run, self.expected.run, self.broken_environments, self.lost_rows)
            if problems:
                raise Wrong("; ".join(problems))
            for count in self.unsettled:  # the last start met them
                count.survived += 1
        except Wrong:
            for count in self.counts:
                count.wrong += 1
            raise
        self.tally.runs[self.configuration.name] += 1
        self.tally.files[self.configuration.name] += len(files(self.run))

    def choose(self) -> str:
        """Draw a fault that is possible now; most of them are kills."""
        while True:
            if self.full_disk and self.run.exists() and self.dice.random() < 0.2 and DISK_FULL in self.allowed:
                return DISK_FULL
            group = self.dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            fault = self.dice.choice(group)
            possible = fault in self.allowed
            if fault in DAMAGES:
                possible = possible and is_possible(fault, self.run, self.whole())
            elif fault in WORKERS:  # online, what an environment does becomes data, and no two runs are alike any more
                possible = possible and not self.configuration.online_steps
            elif fault == "kill -9 in rewind":
                possible = possible and self.run.exists()
            if possible or not any(each in self.allowed for each in KILLS):
                return fault

    def whole(self) -> list[int]:
        """Return the steps of checkpoints from which a start may resume."""
        return [step for step in saved_steps(self.run / "checkpoints") if step not in self.damaged]

    def note(self, fault: str, promise: float | None = None) -> None:
        """Count a fault that repeats at most the given number of updates; count none if that is None."""
        count = self.tally.count(fault, self.configuration.name)
        count.injected += 1
        self.counts.append(count)
        self.unsettled.append(count)
        now = progress(self.run)
        if promise is not None and (now > self.reached or promise > self.promise):
            self.reached, self.promise, self.loser = max(now, self.reached), promise, count

    def damage(self, fault: str) -> bool:
        """Damage the folder; a damage that must be refused is tried at once and undone."""
        backup = self.folder / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(self.run, backup, symlinks=True)
        reached = progress(self.run)
        done = DAMAGES[fault](self.run, self.dice)
        self.note(fault, float("inf") if done.steps else None)
        self.reached = max(self.reached, reached)
        self.damaged |= {*done.steps}
        self.foreign += done.foreign
        self.lost_rows += done.lost_rows
        if done.refused:
            before = files(self.run)
            command = self.command()
            code, output = self.ended(command)
            errors = [line for line in output.splitlines() if line.startswith("drol: error:")]
            if code <= 0 or len(errors) != 1:
                raise Wrong(f"{fault}: not refused in one line, exit code {code}, see {command.log}")
            if files(self.run) != before:
                raise Wrong(f"{fault}: refused, but the folder was changed, see {command.log}")
            shutil.rmtree(self.run)
            backup.rename(self.run)
            self.unsettled.remove(self.counts[-1])
            self.counts[-1].survived += 1
        return False

    def command(self, moment: Moment | None = None, orders: Path | None = None) -> Command:
        self.starts += 1
        log = self.folder / f"{self.starts:03d}.log"
        return Command(self.configuration.command(self.run), log, moment, orders)

    def start(self, fault: str | None) -> bool:
        """Start the run, let a fault happen to it, and return whether it has finished."""
        whole = self.whole()
        moment = self.moment(fault)
        command = self.command(moment, self.orders if fault in WORKERS else None)
        struck = self.disturb(command, fault)
        code, output = self.ended(command, hanging=struck and fault in HANGING)
        self.settle(output, whole[-1] if whole else 0, code)
        if struck and fault in (DISK_FULL, *WORKERS):
            self.note(fault, float("inf") if fault == DISK_FULL else None)
        killed = code == -signal.SIGKILL
        if killed:
            self.note(fault if fault in KILLS else KILLS[-1], INTERVAL)
        elif code != 0 and fault in SIGNALS:
            self.check_signal(fault, code, early=struck, log=command.log)
        elif code != 0 and fault != DISK_FULL and not self.was_finished():
            raise Wrong(f"exit code {code} without a reason, see {command.log}")
        if not killed and "Traceback" in output:
            raise Wrong(f"a traceback, see {command.log}")
        return code == 0

    def was_finished(self) -> bool:
        """Return whether all updates are done: an exit code other than 0 may then tell of damage that was met."""
        return self.configuration.total_steps in saved_steps(self.run / "checkpoints")

    def moment(self, fault: str | None) -> Moment | None:
        """Return when the process is to kill itself; None if that comes from outside."""
        dice, delay = self.dice, self.dice.choice([0.0, self.dice.uniform(0, 0.02)])
        if fault == "kill -9 in rewind":
            return Moment(self.run, dice.randint(1, 15), delay=delay)
        if fault == "kill -9 in a checkpoint":
            return Moment(self.run, dice.randint(1, 60), ("/checkpoints",), delay)
        if fault == "kill -9 in an evaluation":
            parts = ("/policies", "/trajectories", "/evaluations")
            return Moment(self.run, dice.randint(1, 12), parts, dice.choice([delay, dice.uniform(0, 0.5)]))
        return None

    def disturb(self, command: Command, fault: str | None) -> bool:
        """Let a fault happen from outside; return whether it did."""
        if fault == "kill -9 in start-up":
            command.wait(self.dice.uniform(0, self.expected.startup))
            command.send(signal.SIGKILL)
        elif fault == "kill -9 by progress":
            if self.wait_for(command, self.target()):
                command.wait(self.dice.choice([0, self.dice.uniform(0, 0.1)]))
                command.send(signal.SIGKILL)
        elif fault in SIGNALS and self.dice.random() < 0.2:
            command.wait(self.dice.uniform(0, self.expected.startup))
            command.send(signal.Signals[fault])
            return True
        elif fault in SIGNALS:
            if self.wait_for(command, self.target()):
                command.wait(self.dice.uniform(0, 0.05))
                command.send(signal.Signals[fault])
        elif fault == DISK_FULL:
            assert self.full_disk is not None
            if self.wait_for(command, self.target()):
                with self.full_disk(self.dice.choice(FREE)):
                    command.wait()
                return True
        elif fault in WORKERS:
            self.orders.write_text(fault.split()[1])
            next_evaluation = (progress(self.run) // EVALUATION_INTERVAL + 1) * EVALUATION_INTERVAL
            self.wait_for(command, next_evaluation + self.dice.randint(10, 60))
            taken = not self.orders.exists()  # by an environment
            self.broken_environments += taken
            self.orders.unlink(missing_ok=True)
            command.send(signal.SIGKILL)
            return taken
        return False

    def target(self) -> int:
        """Return an update not far ahead."""
        now = progress(self.run)
        return now + self.dice.randint(1, max(2, self.configuration.total_steps // 16))

    def wait_for(self, command: Command, step: int) -> bool:
        """Wait until a row of metrics shows that an update is done; return False if the process ends before."""
        path, size = self.run / "metrics.jsonl", -1
        limit = time.monotonic() + 400
        while command.poll() is None and time.monotonic() < limit:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_size != size:
                    size = path.stat().st_size
                    if last_step(path) >= step:
                        return True
            time.sleep(POLL_SECONDS)
        return False

    def ended(self, command: Command, hanging: bool = False) -> tuple[int, str]:
        """Return exit code and output of a command when nothing of it is left, but for an environment that hangs."""
        code = command.wait()
        if code is None:
            command.send(signal.SIGKILL)
            raise Wrong(f"it does not end, see {command.log}")
        orphans = command.orphans(0.2 if hanging else 10.0)
        if orphans and not hanging:
            raise Wrong(f"{len(orphans)} processes are left, see {command.log}")
        return code, command.output()

    def settle(self, output: str, expected: int, code: int) -> None:
        """Compare where a start went on with where it should have, and count the faults before it as survived."""
        resumed = RESUMED.search(output)
        step = int(resumed[1].replace(",", "")) if resumed else 0
        interrupted = code > 128 and "interrupted" in output  # a signal that came before the run was opened
        if resumed is None and expected and code >= 0 and not interrupted:
            raise Wrong(f"restarted from step 0 (exit code {code}) where the checkpoint of step {expected} was whole")
        if resumed is None and (expected or code != 0):
            return  # it ended too early to tell
        if step != expected:
            raise Wrong(f"went on from step {step} where the checkpoint of step {expected} was whole")
        lost = max(0, self.reached - step)
        if self.loser is not None:
            self.loser.most_lost = max(self.loser.most_lost, lost)
            if lost > self.promise:
                self.loser.lost_more += 1
                raise Wrong(f"{lost} updates were lost by: {self.loser.fault}")
        for count in self.unsettled:
            count.survived += 1
        self.unsettled, self.reached, self.promise, self.loser = [], 0, 0, None
        self.damaged.clear()  # the run discarded everything newer than the checkpoint
        self.lost_rows = [row for row in self.lost_rows if row[0] == "evaluations.jsonl" or row[1] <= step]

    def check_signal(self, fault: str, code: int, early: bool, log: Path) -> None:
        """Count a signal; a training run saves and exits with the signal's code, a starting run just ends."""
        number = signal.Signals[fault]
        if code not in (128 + number, 130) and not (early and code == -number):
            raise Wrong(f"exit code {code} after {fault}, see {log}")
        self.note(fault, INTERVAL if early else 0)
