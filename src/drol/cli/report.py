"""`drol report`."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import CORRUPTED_FILES
from drol.progress import Progress
from drol.reports.report import PAGE, report
from drol.reports.selected_runs import open_runs
from drol.runs.run import open_run

EPILOG = f"""examples:
  drol report runs/demo                         runs/demo/report.html
  drol report runs/a runs/b                     a comparison on one page: {PAGE} in this folder
  drol report runs --out all.html               all runs below a folder
  drol report runs/cube --video 2               with videos of two episodes

The page is one file and works offline. `drol watch` shows runs while they train."""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "report", "Write a page about one or more runs: curves, comparison, actions of the policies.", EPILOG
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run, or a folder with runs")
    parser.add_argument("--beside", type=Path, metavar="RUN", help="also draw the metrics of this run, dashed")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"the page (default: {PAGE} in the run's folder, or here for several runs)",
    )
    parser.add_argument(
        "--video", dest="videos", type=whole_number, default=0, metavar="N",
        help="record videos of N episodes of the first run of each group",
    )  # fmt: skip
    parsed = parser.parse(arguments)
    opened, beside = open_runs(parsed.runs), open_run(parsed.beside) if parsed.beside else None
    keep_compiled_programs()
    with Progress("report", "parts") as progress:
        page = report(opened, beside, parsed.out, parsed.videos, progress.show)
    print(f"report: {page}")
    return CORRUPTED_FILES if opened[0].damaged else 0
