"""`drol data collect`."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.progress import Progress
from drol.tasks import known_sources
from drol.tasks.catalogue import example_task, find_collector

EXAMPLES = """examples:
  drol data collect pointmaze-large-navigate-v0
  drol data collect cube-single-play-v0 --episodes 100 --seed 1 --processes 2
  drol data collect antmaze-large-navigate-v0 --expert walker
  drol data collect antmaze-umaze-v2 --expert walker --episodes 100"""


def make_parser() -> Parser:
    helps = [source.collecting_help() for source in known_sources().values() if source.collectable()]
    epilog = "\n\n".join([*helps, EXAMPLES])
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
        "--processes", type=whole_number, metavar="N", help="processes that play at once (default: one for each core)"
    )
    parser.add_argument(
        "--expert", type=Path, action="append", default=[], metavar="FOLDER", help="a policy that can do the task"
    )
    parser.add_argument("--out", type=Path, help="the file to write (default: NAME.npz or NAME.hdf5 in this folder)")
    return parser


def run(arguments: list[str]) -> int:
    parsed = make_parser().parse(arguments)
    source = find_collector(parsed.name)
    with Progress("collecting", "trajectories") as progress:
        try:
            written = source.collect(
                parsed.name,
                parsed.out,
                episodes=parsed.episodes,
                seed=parsed.seed,
                processes=parsed.processes,
                experts=parsed.expert,
                report=progress.show,
                note=progress.note,
            )
        except KeyboardInterrupt as stop:
            progress.note(f"stopped; {str(stop) or 'nothing was written'}")
            return 130
    for path, transitions in written.items():
        print(f"wrote {path}: {transitions:,} transitions")
    task = example_task(source, parsed.name)
    if task and written:
        print(f"train on it: drol train {task} --dataset {next(iter(written))}")
    return 0
