"""`drol paper mechanism`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.progress import Progress
from drol_reproduction.mechanism import LAGS, add_rows, measure_runs, read_mechanism, write_mechanism
from drol_reproduction.mechanism_verdicts import mechanism_tables

EPILOG = """examples:
  drol paper mechanism runs/demo --out mechanism.csv
  drol paper mechanism runs/paper/short --out results/mechanism.csv --add
  drol paper figure ownership --mechanism results/mechanism.csv

Each run continues from its newest checkpoint for 3,000 updates, which are not saved. A row compares one seed with
itself after 1, 3, 10, ... updates: how many data actions have another owner, whether old owners rose in Q, how far the
data is from its nearest candidate; and how far candidates spread. The last table decides M1 to M3 of
results/plan_2026-11-18.md."""


def run(arguments: list[str]) -> int:
    parser = Parser("paper mechanism", "Continue runs and follow which latents own which data actions.", EPILOG)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs with candidates, or folders with runs")
    parser.add_argument("--out", type=Path, required=True, help="the CSV file to write")
    parser.add_argument("--add", action="store_true", help="keep the rows of other runs that the file has")
    parser.add_argument("--step", type=int, help="the checkpoint to continue from (default: the newest of each run)")
    words = " ".join(map(str, LAGS))
    parser.add_argument("--lags", nargs="+", type=int, metavar="N", help=f"updates to compare after (default: {words})")
    parsed = parser.parse(arguments)
    if parsed.lags and min(parsed.lags) < 1:
        raise InputError(f"--lags is {' '.join(map(str, parsed.lags))}; every lag must be at least 1")
    if not parsed.out.absolute().parent.is_dir():
        raise InputError(f"--out is {parsed.out}; it must be a file in a folder that exists")
    before = read_mechanism(parsed.out) if parsed.add and parsed.out.exists() else []
    keep_compiled_programs()
    with Progress("mechanism", "updates") as progress:
        rows = measure_runs(parsed.runs, parsed.step, parsed.lags, progress.show)
    rows = add_rows(before, rows)
    write_mechanism(rows, parsed.out)
    print("\n\n".join(mechanism_tables(rows).values()))
    print(f"wrote {len(rows)} rows to {parsed.out}")
    return 0
