"""`drol paper mechanism`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.paper.mechanism import add_rows, measure_runs, read_mechanism, write_mechanism
from drol.progress import Progress

EPILOG = """examples:
  drol paper mechanism runs/demo --out mechanism.csv
  drol paper mechanism runs/paper/small --out results/mechanism.csv --add
  drol paper figure ownership --mechanism results/mechanism.csv

A row is one checkpoint of one seed: how many data actions changed their owner since the checkpoint before, how many
latents own nothing, how much better winners are than other latents by the critic, how often one step along Q makes a
winner lose its action."""


def run(arguments: list[str]) -> int:
    parser = Parser("paper mechanism", "Follow which latents own which data actions in runs.", EPILOG)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs of drol, or folders with such")
    parser.add_argument("--out", type=Path, required=True, help="the CSV file to write")
    parser.add_argument("--add", action="store_true", help="keep the rows of other runs that the file has")
    parsed = parser.parse(arguments)
    before = read_mechanism(parsed.out) if parsed.add and parsed.out.exists() else []
    keep_compiled_programs()
    with Progress("mechanism", "runs") as progress:
        rows = measure_runs(parsed.runs, progress.show)
    rows = add_rows(before, rows)
    write_mechanism(rows, parsed.out)
    print(f"wrote {len(rows)} rows to {parsed.out}")
    return 0
