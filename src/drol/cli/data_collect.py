"""`drol data collect`."""

import sys
from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.tasks.collect import COLLECTABLE, collect

EPILOG = """example:
  drol data collect pointmaze-large-navigate-v0 --episodes 1000"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "data collect", "Make an OGBench dataset by noisy walks to random goals along its oracle sub-goals.", EPILOG
    )
    parser.add_argument("name", help=f"one of {', '.join(COLLECTABLE)}")
    parser.add_argument(
        "--episodes",
        type=whole_number,
        default=100,
        metavar="N",
        help="trajectories of 1000 transitions; a tenth as many more are for validation (default: 100)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="the same seed gives the same arrays (default: 0)"
    )
    parser.add_argument("--out", type=Path, help="the file to write (default: NAME.npz)")
    parsed = parser.parse(arguments)
    path = parsed.out or Path(f"{parsed.name}.npz")
    for written in collect(parsed.name, path, parsed.episodes, parsed.seed, report_progress):
        print(f"wrote {written}")
    return 0


def report_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} trajectories", end="\n" if done == total else "", file=sys.stderr, flush=True)
