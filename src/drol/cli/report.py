"""`drol report`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.experiments.report import report
from drol.runs.run import open_run


def run(arguments: list[str]) -> int:
    parser = Parser("report", "Draw the figures of a run and write its report.html.")
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--beside", type=Path, metavar="RUN", help="another run whose routing is drawn dashed beside")
    parsed = parser.parse(arguments)
    opened, beside = open_run(parsed.run), open_run(parsed.beside) if parsed.beside else None
    keep_compiled_programs()
    print(f"report: {report(opened, beside)}")
    return 0
