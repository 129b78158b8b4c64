"""Progress that people see: a live bar in a terminal, a line now and then elsewhere, nothing when it is to be quiet."""

import sys
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from drol.errors import plain

# What long work calls while it goes on: how much is done, how much there is (None: unknown), and what is done now.
Report = Callable[[float, float | None, str], None]

LINE_SECONDS = 10.0  # between two lines where there is no terminal


def duration(seconds: float) -> str:
    """Return a time as people say it: 45 s, 3 min 20 s, 2 h 5 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class Progress:
    """Shows how much of some work is done, how fast it goes and how long it still takes.

    Args:
        title: What is going on, such as "training".
        unit: What is counted, such as "updates".
        scale: What a count is divided by before it is shown, such as 1e6 for bytes in MB.
        quiet: Whether to show nothing at all.
    """

    def __init__(self, title: str, unit: str, scale: float = 1, quiet: bool = False):
        self.title, self.unit, self.scale = title, unit, scale
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.done = 0.0
        self.total: float | None = None
        self.first: float | None = None  # what was done when the clock started
        self.seconds = 0.0
        self.started = self.last_line = time.monotonic()
        self.bar: Bar | None = None
        if self.console.is_terminal and not quiet:
            text = TextColumn("{task.fields[text]}", markup=False)  # names of files may have brackets
            columns = (TextColumn(title), BarColumn(None), text, TimeElapsedColumn())
            self.bar = Bar(*columns, console=self.console)
            self.line = self.bar.add_task("", total=None, text="starting")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()
        sys.stderr.flush()

    @property
    def rate(self) -> float:
        """Units of work in a second; 0 before anything was timed."""
        return (self.done - (self.first or 0)) / self.seconds if self.seconds else 0.0

    def show(self, done: float, total: float | None, what: str = "", seconds: float | None = None) -> None:
        """Show how far the work is; the first call only starts the clock.

        Args:
            done: Units that are done.
            total: Units that there are in all; None if nobody knows.
            what: What is done now.
            seconds: How long the work since the last call took, where that is not all of the time that passed.
        """
        now = time.monotonic()
        self.done, self.total = done, total
        if self.first is None:
            self.first, self.started = done, now
        else:
            self.first = min(self.first, done)  # work that begins again
            self.seconds = now - self.started if seconds is None else self.seconds + seconds
        text = self.text(what)
        if self.bar:
            self.bar.update(self.line, total=total, completed=done, text=text)
        elif now - self.last_line > LINE_SECONDS or (done == total and done > self.first):
            self.last_line = now
            self.console.print(f"{self.title}: {text}", markup=False)

    def text(self, what: str) -> str:
        """Return the line: counts, rate, time left, what is done now."""
        parts = [self.count(self.done) if self.total is None else f"{self.count(self.done)}/{self.count(self.total)}"]
        parts[0] += f" {self.unit}"
        if self.rate:
            parts.append(f"{self.rate / self.scale:,.{0 if self.rate >= 10 * self.scale else 1}f}/s")
            if self.total is not None:
                parts.append(f"{duration((self.total - self.done) / self.rate)} left")
        return ", ".join([*parts, plain(what)] if what else parts)  # names of files are in it

    def count(self, number: float) -> str:
        return f"{number:,.0f}" if self.scale == 1 else f"{number / self.scale:,.1f}"

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print("\n".join(map(plain, text.split("\n"))), markup=False)

    def warn(self, text: str) -> None:
        """Print a line that has to be seen, even where everything else is to be quiet."""
        quiet, self.console.quiet = self.console.quiet, False
        self.note(text)
        self.console.quiet = quiet
