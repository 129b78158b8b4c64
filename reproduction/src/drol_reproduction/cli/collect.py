"""`drol data collect`."""

import sys
from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.progress import Progress
from drol.tasks.catalogue import example_task
from drol_reproduction.collecting import COLLECTORS, collect, find_collector
from drol_reproduction.collecting.collected import append_fingerprint, read_fingerprints, read_record

EXAMPLES = """examples:
  drol data collect pointmaze-large-navigate-v0
  drol data collect cube-single-play-v0 --episodes 100 --seed 1 --processes 2
  drol data collect antmaze-large-navigate-v0 --expert walker
  drol data collect antmaze-umaze-v2 --expert walker --episodes 100"""


def make_parser() -> Parser:
    epilog = "\n\n".join([*(each.help for each in COLLECTORS), EXAMPLES])
    parser = Parser("data collect", "Make a dataset on this machine by playing episodes.", epilog)
    parser.add_argument("name", help="the name of the dataset, see below")
    parser.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="episodes to play; each becomes a trajectory (default: as many as the published dataset has)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="the same seed gives the same arrays (default: 0)"
    )
    parser.add_argument(
        "--processes", type=whole_number, metavar="N", help="parallel processes (default: one per core)"
    )
    parser.add_argument(
        "--expert",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="the folder of a policy that solves the task",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the file to write (default: NAME-EXPERT.npz or .hdf5 in this folder, NAME.npz without --expert)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="also add the seed, size, hashes and versions to this JSON file of fingerprints",
    )
    return parser


def run(arguments: list[str]) -> int:
    parsed = make_parser().parse(arguments)
    find_collector(parsed.name)
    if parsed.record:
        read_fingerprints(parsed.record)  # before the collection, so that an error costs no time
    with Progress("collecting", "trajectories") as progress:
        try:
            written = collect(
                parsed.name,
                parsed.out,
                episodes=parsed.episodes,
                seed=parsed.seed,
                processes=parsed.processes,
                experts=parsed.expert,
                report=progress.show,
            )
        except KeyboardInterrupt as stop:
            print(f"stopped; {str(stop) or 'nothing was written'}", file=sys.stderr)
            return 130
    record = read_record(next(iter(written))) if written else None
    for path, transitions in written.items():
        digest = f", sha256 of the arrays {record['files'][path.name]['sha256']}" if record else ""
        print(f"wrote {path}: {transitions:,} transitions{digest}")
    if record and parsed.record:
        append_fingerprint(parsed.record, record)
        print(f"recorded {record['name']} in {parsed.record}")
    task = example_task(parsed.name)
    if task and written:
        print(f"train on it: drol train {task} --dataset {next(iter(written))}")
    return 0
