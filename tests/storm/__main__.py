"""`./run storm`: kill, stop, damage and starve small runs for some minutes, and see that they end as if undisturbed."""

import contextlib
import fnmatch
import functools
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from drol.cli import flags
from drol.cli.main import complain
from drol.errors import InputError
from drol.machine import available_cores
from drol.storage import write_whole
from drol_reproduction.documents import fill_document
from storm.configurations import CONFIGURATIONS, Configuration
from storm.paper_queue import QUEUE_FAULTS, QueueTrial
from storm.processes import get_ready
from storm.small_disk import filled, small_disk
from storm.tally import Tally, add_storms, storm_tables
from storm.tasks import DATA, write_data
from storm.trial import EVERY_FAULT, Trial, Undisturbed, Wrong

COMMAND = "./run storm"
EPILOG = """examples:
  ./run storm                                   ten minutes
  ./run storm --minutes 60 --out results/storm.json --document docs/reliability.md
  ./run storm --minutes 30 --seed 1 --out results/storm.json --add     half an hour more, with other faults
  ./run storm --configurations 'drol*' --faults 'kill*' 'SIG*'
  ./run storm --seed 7 --first 12 --trials 1    the thirteenth run of the storm with the seed 7 again

The faults follow from the seed; how far a process is when one strikes also depends on the machine. A run that does
not end as the undisturbed one keeps its folder, and the exit code is 1."""


def make_parser() -> flags.Parser:
    parser = flags.Parser("storm", "Kill, stop, damage and starve small runs, and compare how they end.", EPILOG)
    parser.prog = COMMAND
    parser.add_argument(
        "--minutes", type=flags.number, default=10.0, help="when the last fault is injected (default: 10)"
    )
    parser.add_argument("--trials", type=flags.whole_number, metavar="N", help="runs, in place of --minutes")
    parser.add_argument(
        "--seed", type=flags.whole_number, default=0, metavar="N", help="what the faults follow from (default: 0)"
    )
    parser.add_argument(
        "--first", type=flags.whole_number, default=0, metavar="N", help="number of the first run (default: 0)"
    )
    parser.add_argument("--configurations", nargs="+", default=["*"], metavar="GLOB", help="only these (default: all)")
    parser.add_argument("--faults", nargs="+", default=["*"], metavar="GLOB", help="only these (default: all)")
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/storm"), help="where runs are kept (default: runs/storm)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="a JSON file for the numbers")
    parser.add_argument("--add", action="store_true", help="add to the numbers that the file of --out has")
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked tables are made")
    return parser


class Storm:
    """All trials, one after another."""

    def __init__(self, parsed: Any, disk: Path | None):
        self.parsed, self.disk, self.tally, self.failures = parsed, disk, Tally(), 0
        self.folder = parsed.folder.absolute()
        shutil.rmtree(self.folder / "undisturbed", ignore_errors=True)
        self.known: dict[str, Undisturbed] = {}
        self.faults = chosen([*EVERY_FAULT, *QUEUE_FAULTS], parsed.faults, "--faults")
        names = [each.name for each in CONFIGURATIONS]
        wanted = chosen([*names, QueueTrial.name], parsed.configurations, "--configurations")
        self.order: list[Configuration | None] = [each for each in CONFIGURATIONS if each.name in wanted] * 2
        self.order += [None] * (QueueTrial.name in wanted)  # stands for the queue
        added = parsed.add and parsed.out and parsed.out.is_file()
        self.before = json.loads(parsed.out.read_text()) if added else None
        self.started = time.monotonic()
        self.end = float("inf") if parsed.trials else self.started + 60 * parsed.minutes

    def rage(self) -> None:
        """Make trials until the time or their number is up."""
        first, count = self.parsed.first, self.parsed.trials
        for index in range(first, first + count) if count else itertools.count(first):
            if time.monotonic() > self.end:
                break
            self.trial(index)
            self.save()  # so that nothing is lost if the storm itself ends badly
            done = f"{self.tally.kills} kills, {self.tally.faults} faults, {self.failures} runs wrong"
            print(f"storm: {self.minutes:.1f} minutes, {done}", flush=True)

    def save(self) -> dict[str, Any]:
        """Return all numbers, those of storms before it too if that is asked for; write them to the file."""
        found = add_storms(self.before, self.to_dict()) if self.before else self.to_dict()
        if self.parsed.out:
            write_whole(self.parsed.out, json.dumps(found, indent=1) + "\n")
        return found

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self.started) / 60

    def trial(self, number: int) -> None:
        """Make one trial, and say what was wrong with it."""
        configuration = self.order[number % len(self.order)]
        dice = random.Random(f"{self.parsed.seed}/{number}")
        on_small_disk = dice.random() < 1 / 3 and self.disk is not None and configuration is not None
        place = self.disk if on_small_disk else self.folder
        assert place is not None
        folder = place / f"{self.parsed.seed}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            if configuration is None:
                QueueTrial(
                    folder, self.folder / "undisturbed" / "queue", dice, self.tally, self.faults, self.end
                ).weather()
            else:
                full_disk = functools.partial(filled, self.disk) if on_small_disk else None
                expected = self.undisturbed(configuration)
                options = (dice, self.tally, self.faults, full_disk, self.end)
                Trial(configuration, expected, folder, *options).weather()
            shutil.rmtree(folder)
        except Wrong as error:
            self.failures += 1
            if on_small_disk:
                shutil.rmtree(self.folder / folder.name, ignore_errors=True)
                shutil.move(folder, self.folder / folder.name)
            print(f"storm: WRONG: {error}\n  kept: {self.folder / folder.name}", flush=True)
            print(
                f"  again: {COMMAND} --seed {self.parsed.seed} --first {number} --trials 1{self.filters()}", flush=True
            )

    def filters(self) -> str:
        """Return the flags that choose what a trial of a number is."""
        words = [("--configurations", self.parsed.configurations), ("--faults", self.parsed.faults)]
        return "".join(f" {flag} {' '.join(map(repr, globs))}" for flag, globs in words if globs != ["*"])

    def undisturbed(self, configuration: Configuration) -> Undisturbed:
        """Return the undisturbed run of a configuration, made when it is first needed."""
        name = configuration.name
        if name not in self.known:
            folder = self.folder / "undisturbed" / name.replace(", ", "-").replace(" ", "-")
            self.known[name] = Undisturbed(configuration, folder)
        return self.known[name]

    def to_dict(self) -> dict[str, Any]:
        return {
            "minutes": round(self.minutes),
            "seeds": [self.parsed.seed],
            "date": time.strftime("%Y-%m-%d"),
            "cores": available_cores(),
            "not tried": [] if self.disk else ["a full disk, because no small one could be mounted"],
            **self.tally.to_dict(),
        }


def chosen(names: list[str], globs: list[str], flag: str) -> tuple[str, ...]:
    """Return the names that match; refuse what matches none."""
    for glob in globs:
        if not fnmatch.filter(names, glob):
            raise InputError(f"{flag} {glob!r} matches nothing; there are: {', '.join(names)}")
    return tuple(name for name in names if any(fnmatch.fnmatch(name, glob) for glob in globs))


def run(arguments: list[str]) -> int:
    parsed = make_parser().parse(arguments)
    os.environ[DATA] = str(parsed.folder.absolute() / "data")
    write_data(Path(os.environ[DATA]))
    get_ready()
    with contextlib.ExitStack() as stack:
        mounted = stack.enter_context(small_disk(parsed.folder.absolute() / "small-disk"))
        storm = Storm(parsed, parsed.folder.absolute() / "small-disk" if mounted else None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # end, and tell what was found so far
            signal.signal(number, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            storm.rage()
    tables = storm_tables(storm.save())
    print("\n\n".join(tables.values()))
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables)
    print(f"storm: {storm.failures} runs ended wrong")
    return 1 if storm.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except InputError as error:
        sys.exit(complain(error, 2))
