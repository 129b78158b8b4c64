"""`drol paper summary`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol_reproduction.cli.flags import add_result_flags, results_from
from drol_reproduction.documents import fill_document
from drol_reproduction.mechanism import read_mechanism
from drol_reproduction.summary import COMMAND, summary_tables

EPILOG = """examples:
  drol paper summary --scale small
  drol paper summary --results results/paper_small.csv --mechanism results/mechanism.csv --document docs/results.md"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper summary", "Summarise our runs: scores, order of methods, K, the mechanism.", EPILOG)
    add_result_flags(parser)
    parser.add_argument("--mechanism", type=Path, metavar="FILE", help="what `drol paper mechanism` wrote")
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked tables are made")
    parsed = parser.parse(arguments)
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    results = results_from(parsed)
    tables = summary_tables(results, read_mechanism(parsed.mechanism) if parsed.mechanism else ())
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables)
        print(f"wrote {parsed.document}")
    else:
        print("\n\n".join(tables.values()))
    return 1 if results.skipped else 0
