"""`drol sweep run`."""

import argparse
import sys
from pathlib import Path

from drol.cli.flags import Parser, add_executor_flags, executor_from
from drol.cli.main import signal_of
from drol.progress import Progress
from drol.sweeps.execute import run_sweep, was_stopped
from drol.sweeps.status import forecast, sweep_status, text_status
from drol.sweeps.sweep_file import read_sweep
from drol.tracking import PACKAGES

EPILOG = """examples:
  drol sweep run sweep.toml                     one run per core; the same command resumes
  drol sweep run sweep.toml --processes 1       one run at a time, on all cores
  drol sweep run sweep.toml --retries 3
  drol sweep run sweep.toml --executor ray --address auto --gpus 0.25            a Ray cluster; four runs share a GPU
  drol sweep run sweep.toml --executor slurm --sbatch='--account=lab --time=9:00:00'     SLURM job arrays

On Ctrl-C or `drol sweep stop` in another terminal, the active runs save a checkpoint and stop. A failed run does not
stop the others; only `drol sweep retry` runs it again. The exit code is 1 if a run failed."""

STOPPED = "drol: stopped and saved; run the same command to continue"


def run(arguments: list[str]) -> int:
    return do(arguments, Parser("sweep run", "Execute the missing runs of a sweep.", EPILOG), again=False)


def do(arguments: list[str], parser: Parser, again: bool) -> int:
    """Run a sweep and print the outcome; return 1 if a run failed or the sweep was stopped."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep file; `drol sweep new` writes an example")
    add_executor_flags(parser)
    parser.add_argument("--track", choices=tuple(PACKAGES), help="also send the metrics of each run to this tracker")
    parsed: argparse.Namespace = parser.parse(arguments)
    sweep = read_sweep(parsed.file)
    executor, imports = executor_from(parsed)
    print(f"drol: {forecast(sweep_status(sweep))}", file=sys.stderr)
    try:
        with Progress("sweep", "updates") as progress:
            run_sweep(sweep, executor, progress.show, imports, again, parsed.track)
    except KeyboardInterrupt as stop:
        print(STOPPED, file=sys.stderr)
        return 128 + signal_of(stop)
    status = sweep_status(sweep)
    print(text_status(status))
    if was_stopped(sweep):
        print(STOPPED, file=sys.stderr)
        return 1
    if status.those("waiting") and not status.those("failed"):
        print("drol: note: the budget is spent; increase it to execute the waiting runs", file=sys.stderr)
    return 1 if status.those("failed") else 0
