"""`drol paper status`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol.jobs.job import read_timings
from drol_reproduction.cli.flags import add_result_flags, results_from
from drol_reproduction.completion import COMMAND, status_tables
from drol_reproduction.documents import fill_document

EPILOG = """examples:
  drol paper status --scale small
  drol paper status --results results/paper_small.csv --timings results --document docs/reproduction.md"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper status", "Show the command and the progress of each table and figure.", EPILOG)
    add_result_flags(parser)
    parser.add_argument(
        "--timings", type=Path, metavar="DIR", help="a folder with timings.jsonl (default: the folder of the runs)"
    )
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked tables are made")
    parsed = parser.parse(arguments)
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    results = results_from(parsed)
    tables = status_tables(results, read_timings(parsed.timings or parsed.root))
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables)
        print(f"wrote {parsed.document}")
    else:
        print("\n\n".join(tables.values()))
    return 1 if results.skipped else 0
