"""`drol paper hypotheses`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol_reproduction.cli.flags import add_planned_result_flags, planned_results_from
from drol_reproduction.documents import fill_document
from drol_reproduction.hypotheses import COMMAND, hypothesis_tables

EPILOG = """The runs, tests and corrections are those of results/plan_2026-11-18.md. A hypothesis is tested when all of
its planned seeds are finished, not before.

examples:
  drol paper hypotheses
  drol paper hypotheses --results results/paper_tasks.csv --document docs/results.md"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper hypotheses", "Print the planned runs, and what they say about the hypotheses.", EPILOG)
    add_planned_result_flags(parser)
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked tables are made")
    parsed = parser.parse(arguments)
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    results = planned_results_from(parsed)
    tables = hypothesis_tables(results)
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables)
        print(f"wrote {parsed.document}")
    else:
        print("\n\n".join(tables.values()))
    return 1 if results.skipped else 0
