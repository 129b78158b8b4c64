"""`drol data collect`."""

import argparse
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from drol.cli.flags import Parser, whole_number
from drol.errors import InputError
from drol.progress import duration
from drol.tasks.d4rl.names import COLLECTABLE, DATASET_URLS
from drol.tasks.ogbench.collecting.collect import Progress, collect, parts_folder
from drol.tasks.ogbench.collecting.recipes import RECIPES

D4RL_SUFFIX = ".hdf5"
FAMILIES = ("pointmaze", "cube", "scene", "puzzle", "antmaze", "humanoidmaze", "antsoccer", "visual")


def list_names() -> str:
    """Every name of OGBench, by family, on lines of at most 110 characters."""
    return "\n".join(wrap([name for name in RECIPES if name.startswith(family)]) for family in FAMILIES)


def wrap(names: Sequence[str]) -> str:
    return textwrap.fill(" ".join(names), 110, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


EPILOG = f"""names:
{list_names()}
{wrap(COLLECTABLE)}

Mazes of points and all tables are collected by the oracles of the ogbench package. Bodies with legs need --expert, a
policy folder that `drol data expert --help` explains; an ant that has flipped over ends its episode. Antsoccer takes
--expert twice: one that walks and one with input ogbench-ball that dribbles; without it the walker pushes the ball.
Finished trajectories are kept in NAME.parts; after an interruption the same command goes on.
D4RL's (the last lines) need --expert too, in one process and in one go: an ant that walks, or a hand of hand_dapg.

examples:
  drol data collect pointmaze-large-navigate-v0
  drol data collect cube-single-play-v0 --episodes 100 --seed 1 --processes 2
  drol data collect antmaze-large-navigate-v0 --expert walker
  drol data collect antmaze-umaze-v2 --expert walker --episodes 100"""


def run(arguments: list[str]) -> int:
    parser = Parser("data collect", "Collect a dataset on this machine, as OGBench and D4RL did.", EPILOG)
    parser.add_argument("name", help="the name of the dataset, see below")
    parser.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="trajectories; of OGBench a tenth as many more are for validation (default: as many as were published)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="the same seed gives the same arrays (default: 0)"
    )
    parser.add_argument(
        "--processes", type=whole_number, metavar="N", help="that collect at once (default: one for each processor)"
    )
    parser.add_argument(
        "--expert", type=Path, action="append", default=[], metavar="FOLDER", help="a policy that can do the task"
    )
    parser.add_argument("--out", type=Path, help="the file to write (default: NAME.npz; .hdf5 for D4RL)")
    parsed = parser.parse(arguments)
    if parsed.name in DATASET_URLS:
        return collect_d4rl(parsed)
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


def collect_d4rl(parsed: argparse.Namespace) -> int:
    """Write one HDF5 file; nothing is kept of what was interrupted."""
    from drol.tasks.d4rl import collecting as d4rl_collect

    if parsed.processes not in (None, 1):
        raise InputError(f"--processes is {parsed.processes}; {parsed.name} is collected in one, leave it out")
    path = parsed.out or Path(f"{parsed.name}{D4RL_SUFFIX}")
    with Display() as display:
        try:
            rows = d4rl_collect.collect(
                parsed.name,
                path,
                parsed.expert,
                parsed.episodes,
                parsed.seed,
                lambda done, total, rows: display.show(Progress(done, total, rows)),
            )
        except KeyboardInterrupt:
            display.note("stopped; nothing was written")
            return 130
    print(f"wrote {path}: {rows:,} rows")
    print(f"train on it: drol train {parsed.name} --dataset {path}")
    return 0


def known_tasks() -> list[str]:
    from drol.tasks.ogbench.names import task_names

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
