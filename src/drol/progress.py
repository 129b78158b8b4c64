"""What a person sees while a run trains: a live bar in a terminal, plain lines elsewhere."""

import sys
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


def duration(seconds: float) -> str:
    """A time as a person says it: 45 s, 3 min 20 s, 2 h 5 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


class Display:
    """Updates done, their rate, the time left and the latest score."""

    def __init__(self, steps: int, first_step: int, score_name: str, quiet: bool = False):
        self.steps, self.first_step, self.step = steps, first_step, first_step
        self.compiled = False
        self.score_name = score_name
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.score = ""
        self.seconds = 0.0  # spent on updates, without evaluations
        self.last_line = time.monotonic()
        self.bar: Progress | None = None
        if self.console.is_terminal and not quiet:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(None),
                TextColumn("{task.fields[text]}"),
                TimeElapsedColumn(),
            )
            bar = self.bar = Progress(*columns, console=self.console)
            self.line = bar.add_task("training", total=steps, completed=first_step, text="compiling")

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
        """Updates a second, or 0 before any were timed."""
        return (self.step - self.first_step) / self.seconds if self.seconds else 0.0

    def advance(self, step: int, seconds: float) -> None:
        """Show that the updates up to `step` took some seconds; the first call compiles, so its time does not count."""
        self.step = step
        if self.compiled:
            self.seconds += seconds
        else:
            self.compiled, self.first_step = True, step
        left = f"{self.rate:,.0f}/s, {duration((self.steps - step) / self.rate)} left" if self.rate else "compiled"
        text = f"{step:,}/{self.steps:,} updates, {left}{self.score}"
        if self.bar:
            self.bar.update(self.line, completed=step, text=text)
        elif time.monotonic() - self.last_line > 10 or step == self.steps:
            self.last_line = time.monotonic()
            self.console.print(text)

    def show_score(self, step: int, scores: list[float]) -> None:
        mean = sum(scores) / len(scores)
        self.score = f", {self.score_name} {mean:.0f}"
        each = f" (seeds: {', '.join(f'{score:.0f}' for score in scores)})" if len(scores) > 1 else ""
        self.note(f"step {step:,}: {self.score_name} {mean:.1f}{each}")

    def note(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False)
