"""`drol data collect`."""

import sys
import time
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from drol.cli.flags import Parser, whole_number
from drol.tasks.collect import Progress, collect, parts_folder
from drol.tasks.collect_recipes import RECIPES
from drol.training.progress import duration

FAMILIES = ("pointmaze", "cube", "scene", "puzzle", "antmaze", "humanoidmaze", "antsoccer", "visual")


def list_names() -> str:
    """Every name, by family, on lines of at most 110 characters."""
    lines = []
    for family in FAMILIES:
        line = "  "
        for name in (name for name in RECIPES if name.startswith(family)):
            if len(line) + len(name) > 110:
                lines.append(line.rstrip())
                line = "    "
            line += f"{name} "
        lines.append(line.rstrip())
    return "\n".join(lines)


EPILOG = f"""names:
{list_names()}

Mazes of points and all tables are collected by the oracles of the ogbench package. Bodies with legs need --expert, a
policy folder that `drol data expert --help` explains; an ant that has flipped over ends its episode. Antsoccer takes
--expert twice: one that walks and one with input ogbench-ball that dribbles; without it the walker pushes the ball.
Finished trajectories are kept in NAME.parts; after an interruption the same command goes on.

examples:
  drol data collect pointmaze-large-navigate-v0
  drol data collect cube-single-play-v0 --episodes 100 --seed 1 --processes 2
  drol data collect antmaze-large-navigate-v0 --expert walker"""


def run(arguments: list[str]) -> int:
    parser = Parser("data collect", "Collect an OGBench dataset on this machine, as OGBench did.", EPILOG)
    parser.add_argument("name", help="the name of the dataset, see below")
    parser.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="trajectories; a tenth as many more are for validation (default: as many as OGBench's own file has)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="the same seed gives the same arrays (default: 0)"
    )
    parser.add_argument(
        "--processes", type=whole_number, metavar="N", help="that collect at once (default: one for each processor)"
    )
    parser.add_argument(
        "--expert", type=Path, action="append", default=[], metavar="FOLDER", help="a policy that can walk"
    )
    parser.add_argument("--out", type=Path, help="the file to write (default: NAME.npz)")
    parsed = parser.parse(arguments)
    path = parsed.out or Path(f"{parsed.name}.npz")
    with Display() as display:
        try:
            written = collect(
                parsed.name,
                path,
                episodes=parsed.episodes,
                seed=parsed.seed,
                processes=parsed.processes,
                experts=parsed.expert,
                report=display.show,
            )
        except KeyboardInterrupt:
            display.note(
                f"stopped; {display.done} of {display.total} trajectories are in {parts_folder(path)}, "
                "the same command goes on"
            )
            return 130
    for target, transitions in written.items():
        print(f"wrote {target}: {transitions:,} transitions")
    task = parsed.name.replace("-v0", "-singletask-v0")
    if task in known_tasks():
        print(f"train on it: drol train {task} --dataset {path}")
    return 0


def known_tasks() -> list[str]:
    from drol.tasks.ogbench import task_names

    return task_names()


class Display:
    """Trajectories done, transitions a second and the time left: a live bar in a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.done = self.total = self.first = 0
        self.start = self.last_line = time.monotonic()
        self.bar: Bar | None = None
        if self.console.is_terminal:
            columns = (
                TextColumn("collecting"),
                BarColumn(None),
                TextColumn("{task.fields[text]}"),
                TimeElapsedColumn(),
            )
            bar = self.bar = Bar(*columns, console=self.console)
            self.line = bar.add_task("", total=None, text="starting")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()
        sys.stderr.flush()

    def show(self, progress: Progress) -> None:
        """The first call says what earlier commands left; the clock starts there."""
        now = time.monotonic()
        for note in progress.notes:
            self.note(note)
        if not self.total:
            self.start, self.first, self.total = now, progress.done, progress.total
            if progress.done:
                self.note(f"going on after {progress.done} of {progress.total} trajectories")
            if self.bar:
                self.bar.start()
        self.done = progress.done
        text = f"{progress.done:,}/{progress.total:,} trajectories"
        new = progress.done - self.first
        if new:
            seconds = now - self.start
            left = duration(seconds * (progress.total - progress.done) / new)
            text += f", {progress.rows / seconds:,.0f} transitions/s, {left} left"
        if self.bar:
            self.bar.update(self.line, total=progress.total, completed=progress.done, text=text)
        elif now - self.last_line > 10 or (new and progress.done == progress.total):
            self.last_line = now
            self.console.print(text, markup=False)

    def note(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False)
