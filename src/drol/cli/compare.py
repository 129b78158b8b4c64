"""`drol compare`."""

import importlib.util
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from drol.cli.flags import Parser, number
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.results.collect import find_runs
from drol.results.compare import compare
from drol.results.comparison_tables import print_comparison, print_offline
from drol.results.difference import WORSE
from drol.results.groups import AT
from drol.results.offline_comparison import compare_offline, has_only_data
from drol.results.result import EVALUATIONS
from drol.runs.run import open_run

EPILOG = """examples:
  drol compare runs/a runs/b                    two runs of one task; the first one is the baseline
  drol compare runs --baseline fql --out compare.html      all runs below a folder, and an HTML page
  drol compare runs results.csv --at last3      the mean of the last three evaluations, as in the FQL paper
  drol compare runs --difference 10             and the seeds needed to detect a difference of 10
  drol compare runs --evaluation extra          the evaluations of `drol evaluate`, such as --best-of 16
  drol compare main.csv runs/new --fail-if-worse           for CI: exit with 1 if a group is worse

Runs without a simulator are compared by held-out error, share of actions outside the data and offline value; there is
no verdict.
Runs are grouped by task, method and settings; the seeds of a group may be spread over several runs.
docs/comparing.md explains the numbers and the verdicts."""


def run(arguments: list[str]) -> int:
    parsed = read_arguments(arguments)
    if all_have_only_data(parsed.runs):
        return run_offline(parsed)
    comparison = compare(parsed.runs, parsed.baseline, parsed.margin, parsed.at, parsed.evaluation, parsed.difference)
    print(print_comparison(comparison))
    if parsed.out:
        from drol.reports.comparison_page import write_page

        write_page(comparison, parsed.out)
        print(f"\nwrote {parsed.out}")
    worse = parsed.fail_if_worse and any(each.verdict == WORSE for each in comparison.differences)
    return 1 if worse or comparison.skipped else 0


def all_have_only_data(paths: Sequence[Path]) -> bool:
    """Return whether all paths are folders with runs and no run was evaluated in a simulator."""
    try:
        return all(has_only_data(open_run(folder)) for path in paths for folder in find_runs(path))
    except InputError:  # a results file, or an unreadable folder: the comparison of scores reports it
        return False


def run_offline(parsed: Namespace) -> int:
    """Compare runs without a simulator."""
    for name in ("out", "baseline", "fail_if_worse", "difference"):
        if getattr(parsed, name):
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} compares scores, but these runs have no simulator; remove the flag")
    keep_compiled_programs()
    print(print_offline(compare_offline(parsed.runs, lambda words: print(f"drol: note: {words}", file=sys.stderr))))
    return 0


def read_arguments(arguments: list[str]) -> Namespace:
    """Return the parsed flags; reject a page that cannot be written."""
    parser = Parser("compare", "Compare runs, with confidence intervals and verdicts.", EPILOG)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run, a folder with runs, or a results file"
    )
    parser.add_argument("--baseline", metavar="NAME", help="the group to compare with (default: the first)")
    parser.add_argument(
        "--margin", type=number, default=5.0, metavar="X", help="largest difference that does not matter (default: 5)"
    )
    parser.add_argument(
        "--difference", type=number, metavar="X", help="estimate the seeds needed to detect a true difference of X"
    )
    parser.add_argument("--at", choices=AT, default="last", help="evaluations to compare (default: last)")
    parser.add_argument(
        "--evaluation",
        choices=EVALUATIONS,
        default="training",
        help="those during training, or extra ones of `drol evaluate` (default: training)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a page with curves (.html)")
    parser.add_argument(
        "--fail-if-worse", action="store_true", help="exit with 1 if a group is worse than the baseline"
    )
    parsed = parser.parse(arguments)
    if parsed.out and parsed.out.suffix != ".html":
        raise InputError(f"--out is {parsed.out}; its name must end in .html")
    if parsed.out and not parsed.out.absolute().parent.is_dir():
        raise InputError(f"cannot write {parsed.out}: the folder {parsed.out.absolute().parent} does not exist")
    if parsed.out and importlib.util.find_spec("matplotlib") is None:
        raise InputError("pages need matplotlib; install it with: pip install 'drol[report]'")
    return parsed
