"""`drol sweep results`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.results.comparison_tables import text_of
from drol.results.result_files import check_destination, write_results
from drol.sweeps.status import best_table, sweep_results, sweep_status
from drol.sweeps.sweep_file import read_sweep

EPILOG = """examples:
  drol sweep results sweep.toml                      each choice with its mean and confidence interval, best first
  drol sweep results sweep.toml --out results.csv    every evaluation, for `drol compare` and `drol results`"""


def run(arguments: list[str]) -> int:
    parser = Parser("sweep results", "Print or write the results of a sweep's runs.", EPILOG)
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (.csv, .parquet)")
    parsed = parser.parse(arguments)
    sweep = read_sweep(parsed.file)
    if parsed.out is None:
        print(text_of(best_table(sweep_status(sweep))))
        return 0
    check_destination(parsed.out)
    results = sweep_results(sweep)
    write_results(results, parsed.out)
    print(f"wrote {len(results)} results to {parsed.out}")
    return 1 if results.skipped else 0
