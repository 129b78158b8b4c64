"""Progress display: a live bar in a terminal, a line every few seconds elsewhere, nothing if quiet."""

import sys
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from drol.errors import plain

# Callback of long operations: amount done, total amount (None: unknown), current item.
Report = Callable[[float, float | None, str], None]

LINE_SECONDS = 10.0  # between two lines without a terminal


def duration(seconds: float) -> str:
    """Format a duration: 45 s, 3 min 20 s, 2 h 5 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class Progress:
    """Show the progress, rate and time left of an operation.

    Args:
        title: The operation, such as "training".
        unit: The unit of the counts, such as "updates".
        scale: Divide counts by this before showing them, such as 1e6 for bytes in MB.
        quiet: Show nothing.
    """

    def __init__(self, title: str, unit: str, scale: float = 1, quiet: bool = False):
        self.title, self.unit, self.scale = title, unit, scale
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.done = 0.0
        self.total: float | None = None
        self.first: float | None = None  # units already done when the clock started
        self.seconds = 0.0
        self.started = self.last_line = time.monotonic()
        self.bar: Bar | None = None
        if self.console.is_terminal and not quiet:
            text = TextColumn("{task.fields[text]}", markup=False)  # names of files may have brackets
            columns = (TextColumn(title), BarColumn(None), text, TimeElapsedColumn())
            # Printed lines appear above the bar, unless they are redirected to a file.
            self.bar = Bar(*columns, console=self.console, redirect_stdout=sys.stdout.isatty())
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
        """Units per second; 0 before the first measurement."""
        return (self.done - (self.first or 0)) / self.seconds if self.seconds else 0.0

    def show(self, done: float, total: float | None, what: str = "", seconds: float | None = None) -> None:
        """Show the progress; the first call only starts the clock.

        Args:
            done: Units done.
            total: Total units; None if unknown.
            what: The current item.
            seconds: Working time since the last call, if it is less than the time that passed.
        """
        now = time.monotonic()
        self.done, self.total = done, total
        if self.first is None:
            self.first, self.started = done, now
        else:
            self.first = min(self.first, done)  # the operation restarted
            self.seconds = now - self.started if seconds is None else self.seconds + seconds
        text = self.text(what)
        if self.bar:
            self.bar.update(self.line, total=total, completed=done, text=text)
        elif now - self.last_line > LINE_SECONDS or (done == total and done > self.first):
            self.last_line = now
            self.console.print(f"{self.title}: {text}", markup=False)

    def text(self, what: str) -> str:
        """Return the line: counts, rate, time left, current item."""
        parts = [self.count(self.done) if self.total is None else f"{self.count(self.done)}/{self.count(self.total)}"]
        parts[0] += f" {self.unit}"
        if self.rate:
            parts.append(f"{self.rate / self.scale:,.{0 if self.rate >= 10 * self.scale else 1}f}/s")
            if self.total is not None:
                parts.append(f"{duration((self.total - self.done) / self.rate)} left")
        return ", ".join([*parts, plain(what)] if what else parts)  # it may contain names of files

    def count(self, number: float) -> str:
        return f"{number:,.0f}" if self.scale == 1 else f"{number / self.scale:,.1f}"
