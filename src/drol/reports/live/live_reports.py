"""Reports of runs while they train: the page of a run shows its episodes and actions as they are now."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from drol.reports.live.watcher import Watcher

FOLLOWED_SECONDS = 10.0  # since a browser asked for a run, until nobody looks at it
PAUSE_SECONDS = 1.0
NICENESS = 10  # of the process that draws: training goes first


class ReportMaker:
    """Makes the report of whatever run is looked at again after each of its evaluations, in a process of its own."""

    def __init__(self, watcher: Watcher):
        self.watcher = watcher
        self.made: dict[Path, int] = {}  # the step of the newest evaluation that the report of a run shows
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.ended.wait(PAUSE_SECONDS):
            for folder, step in self.watcher.followed(FOLLOWED_SECONDS):
                if self.made.get(folder) != step and not self.ended.is_set():
                    self.made[folder] = step  # one that cannot be made is not tried again until there is more to show
                    self.make(folder)

    def make(self, folder: Path) -> None:
        """Make one report; what goes wrong there is seen in that no new one appears."""
        command = [sys.executable, "-m", "drol.cli.main", "report", str(folder.absolute())]
        nothing = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
        with contextlib.suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, self.process.pid, NICENESS)
        while self.process.poll() is None:
            if self.ended.is_set():
                self.process.kill()
            time.sleep(0.1)

    def close(self) -> None:
        """End, and the process that draws with it."""
        self.ended.set()
        self.thread.join()
