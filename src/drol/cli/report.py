"""`drol report`."""

import sys
from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.main import complain
from drol.errors import DAMAGE_SET_ASIDE
from drol.experiments.report import report
from drol.runs.run import Run, open_run


def run(arguments: list[str]) -> int:
    parser = Parser("report", "Draw the figures of a run and write its report.html.")
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--beside", type=Path, metavar="RUN", help="another run whose routing is drawn dashed beside")
    parsed = parser.parse(arguments)
    opened, beside = open_run(parsed.run), open_run(parsed.beside) if parsed.beside else None
    keep_compiled_programs()
    print(f"report: {report(opened, beside, note=lambda words: print(f'drol: note: {words}', file=sys.stderr))}")
    return tell_damage(opened)


def tell_damage(run: Run) -> int:
    """Print what was found damaged and set aside or left out; return the exit code."""
    for words in run.damage:
        complain(f"damaged: {words}", DAMAGE_SET_ASIDE)
    return DAMAGE_SET_ASIDE if run.damage else 0
