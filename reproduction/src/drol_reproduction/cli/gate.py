"""`drol paper gate`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol_reproduction.cli.flags import add_planned_result_flags, planned_results_from
from drol_reproduction.documents import fill_document
from drol_reproduction.gate import COMMAND, gate_table, gates

EPILOG = """gates, on cube-single-play-singletask-task2-v0:
  fql   after 20,000 and 40,000 updates with the paper's settings, against six public runs (alpha 217, 294, 400; two
        seeds each): on the curve if the 95% interval of the difference holds 0 and our mean is at most 15 points lower
  iql   after 100,000 updates with networks of three layers of 256: at least 60

exit codes: 0 if every gate is passed, 1 if one is not or lacks seeds

examples:
  drol paper gate
  drol paper gate --results results/paper_tasks.csv --document docs/results.md"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper gate", "Check whether our baselines learn as fast as public runs.", EPILOG)
    add_planned_result_flags(parser)
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked table is made")
    parsed = parser.parse(arguments)
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    results = planned_results_from(parsed)
    found = gates(results)
    if parsed.document:
        fill_document(parsed.document, COMMAND, {"gates": gate_table(found)})
        print(f"wrote {parsed.document}")
    else:
        print(gate_table(found))
    return 0 if all(gate.passed for gate in found) and not results.skipped else 1
