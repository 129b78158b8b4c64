"""Commands of drol as processes, forked from this one, which has imported drol already; and the moments that kill them.

To import jax takes longer than all else that a small run does, so a storm of real starts would be a breeze. A forked
process runs the same command from its first line on. Nothing here may use jax before the fork.
"""

import atexit
import gc
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import drol
import drol.cli.train
import drol.training.online
import storm.tasks
from drol.cli.main import main
from drol.evaluation.environment_process import EnvironmentProcess
from storm.environment import ORDERS

POLL_SECONDS = 0.003
SHORT_TIMEOUT = 15.0  # seconds that an environment may take, where one hangs on purpose
LONGEST = 400.0  # limit of any command in seconds; a longer one counts as hanging
WRITES = os.O_WRONLY | os.O_RDWR
CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}

drol.register_task_source(storm.tasks.StormTasks())


@dataclass(frozen=True)
class Moment:
    """When a process kills itself: before it changes a file of a folder for the n-th time, or a little later."""

    folder: Path
    count: int
    parts: tuple[str, ...] = ("",)  # only changes whose path has one of these
    delay: float = 0.0

    def watch(self) -> None:
        """Kill this process at the chosen moment; Python calls audit hooks before each file operation."""
        seen, folder = 0, str(self.folder)

        def hook(event: str, arguments: tuple) -> None:
            nonlocal seen
            if event not in CHANGES or not isinstance(arguments[0], str | Path):
                return
            if event == "open" and not (arguments[2] or 0) & WRITES:
                return
            path = str(arguments[0])
            if path.startswith(folder) and any(part in path.removeprefix(folder) for part in self.parts):
                seen += 1
                if seen == self.count:
                    kill_after(self.delay)

        sys.addaudithook(hook)


def kill_after(delay: float) -> None:
    def kill() -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    if delay:
        threading.Thread(target=kill, daemon=True).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


class Command:
    """A running command of drol in a separate session, with its output."""

    def __init__(self, arguments: list[str], log: Path, moment: Moment | None = None, orders: Path | None = None):
        self.log, self.started = log, time.monotonic()
        self.code: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            become(arguments, log, moment, orders)

    def poll(self) -> int | None:
        """Return the exit code, -n after the signal n; None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, seconds: float = LONGEST) -> int | None:
        """Return the exit code; None if it does not end in time."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return self.code

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def others(self) -> list[int]:
        """Return the other living processes of its session: environments and what serves them."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[3]) == self.pid and int(entry.name) != self.pid and fields[0] != "Z":
                found.append(int(entry.name))
        return found

    def orphans(self, seconds: float = 10.0) -> list[int]:
        """Return what is left of its session so long after its end, and end that."""
        end = time.monotonic() + seconds
        while (left := self.others()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def become(arguments: list[str], log: Path, moment: Moment | None, orders: Path | None) -> None:
    """Turn this forked process into the command; never return."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):  # a shell may have had them ignored
            signal.signal(number, signal.SIG_DFL)
        with log.open("w") as file, Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        if orders:
            os.environ[ORDERS] = str(orders)
            shorten_timeouts()
        if moment:
            moment.watch()
        code = main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def shorten_timeouts() -> None:
    """Let environments of this process answer in seconds, so that a hanging environment does not delay the storm."""
    make = EnvironmentProcess.__init__

    def make_impatient(self: EnvironmentProcess, *arguments, **named) -> None:
        make(self, *arguments, **named)
        self.timeout = SHORT_TIMEOUT

    EnvironmentProcess.__init__ = make_impatient


def get_ready() -> None:
    """Leave what was imported alone when garbage is collected; a forked process would copy all of it."""
    gc.collect()
    gc.freeze()
