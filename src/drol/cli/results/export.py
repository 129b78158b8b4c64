"""`drol results export`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.main import complain
from drol.experiments.results.collect import collect_results
from drol.experiments.results.files import check_destination, write_results
from drol.experiments.results.result import Results

EPILOG = """examples:
  drol results export runs --out results.csv
  drol results export runs/pointmaze /mnt/other/runs --out results.parquet

Each row is one evaluation of one seed. Parquet needs pip install 'drol[lerobot]'."""


def run(arguments: list[str]) -> int:
    parser = Parser("results export", "Write the results of runs to one file.", EPILOG)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run, a folder with runs, or a results file"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write (.csv, .parquet)")
    parsed = parser.parse(arguments)
    check_destination(parsed.out)
    results = collect_results(parsed.runs)
    write_results(results, parsed.out)
    print(f"wrote {len(results)} results to {parsed.out}")
    return report_skipped(results)


def report_skipped(results: Results) -> int:
    """Print what was left out; return the exit code: 1 if there is such a thing."""
    for line in results.skipped:
        complain(f"left out {line}", 1)
    return 1 if results.skipped else 0
