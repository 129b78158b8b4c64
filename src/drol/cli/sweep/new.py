"""`drol sweep new`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.sweeps.sweep_file import write_example


def run(arguments: list[str]) -> int:
    parser = Parser("sweep new", "Write an example sweep file with comments, ready to run.")
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path("sweep.toml"), metavar="FILE", help="default: sweep.toml"
    )
    path = write_example(parser.parse(arguments).file)
    print(f"wrote {path}; edit it, then: drol sweep run {path}")
    return 0
