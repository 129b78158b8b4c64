"""`drol sweep stop`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.sweeps.execute import stop_sweep
from drol.sweeps.sweep_file import read_sweep


def run(arguments: list[str]) -> int:
    parser = Parser(
        "sweep stop", "Stop a sweep of another process: its runs save a checkpoint first; wait for their end."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep")
    parsed = parser.parse(arguments)
    stop_sweep(read_sweep(parsed.file))
    print(f"stopped; `drol sweep run {parsed.file}` resumes")
    return 0
