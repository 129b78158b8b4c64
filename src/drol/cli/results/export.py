"""`drol results export`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.results.collect import collect_results
from drol.results.result_files import check_destination, write_results

EPILOG = """examples:
  drol results export runs --out results.csv
  drol results export runs/pointmaze /mnt/other/runs --out results.parquet

Each row is one evaluation of one seed. Parquet needs: pip install 'drol[tables]'"""


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
    return 1 if results.skipped else 0
