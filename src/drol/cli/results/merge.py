"""`drol results merge`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.results.merge import merge_results
from drol.results.result_files import check_destination, write_results

EPILOG = """examples:
  drol results merge laptop.csv cluster.parquet --out all.csv
  drol results merge old.csv new.csv --out all.csv --keep-apart     all.csv and, if needed, all-2.csv

A result that several files contain is written once. Results of one task with different data, timing of success or
versions of ogbench, mujoco or gymnasium are an error, or go to separate files with --keep-apart. Two different scores
of the same policy are always an error."""


def run(arguments: list[str]) -> int:
    parser = Parser("results merge", "Merge the results of several files.", EPILOG)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a results file, a run, a folder with runs")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write (.csv, .parquet)")
    parser.add_argument("--keep-apart", action="store_true", help="write one file for each compatible set of results")
    parsed = parser.parse(arguments)
    check_destination(parsed.out)
    parts = merge_results(parsed.files, parsed.keep_apart)
    for number, part in enumerate(parts, 1):
        path = parsed.out if number == 1 else parsed.out.with_stem(f"{parsed.out.stem}-{number}")
        write_results(part, path)
        print(f"wrote {len(part)} results to {path}")
    return 1 if parts[0].skipped else 0
