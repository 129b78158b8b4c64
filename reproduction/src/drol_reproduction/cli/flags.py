"""Shared flags of the commands of `drol paper`: for plans and for results."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.presets.scales import SCALES
from drol.results.collect import collect_results
from drol.results.result import Results
from drol_reproduction.experiments import COLUMNS, EXPERIMENTS
from drol_reproduction.plan import ROOT, Plan, make_plan

PLANNED_SCALES = ("short", "medium")


def add_plan_flags(parser: Parser) -> None:
    names = ", ".join(EXPERIMENTS)
    parser.add_argument("experiments", nargs="+", metavar="WHAT", help=f"tables and figures: {names}")
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="paper",
        help="paper: as published; short: fewer updates; medium: 3x256 networks; small: point mazes; smoke: a test "
        "of a minute (default: paper)",
    )
    parser.add_argument("--tasks", default="*", metavar="GLOB", help="only tasks whose name matches, such as 'cube-*'")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=f"only these columns of {', '.join(COLUMNS)}")
    parser.add_argument(
        "--seeds", type=whole_number, metavar="N", help="seeds of each task (default: as many as the scale has)"
    )
    parser.add_argument(
        "--seeds-per-run",
        type=whole_number,
        metavar="N",
        help="seeds in one process (default: all at scale paper, else 1)",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help=f"where the runs are kept (default: {ROOT})")
    parser.add_argument(
        "--results",
        nargs="+",
        type=Path,
        default=[],
        metavar="PATH",
        help="files of `drol results export`, or runs of another root, that count as finished",
    )


def plan_from(parsed: argparse.Namespace, results: Results) -> Plan:
    """Return the plan that a command line asks for, given the results that it names."""
    return make_plan(
        parsed.experiments,
        parsed.scale,
        parsed.tasks,
        parsed.methods,
        parsed.seeds,
        parsed.root,
        parsed.seeds_per_run,
        results,
    )


def add_result_flags(parser: Parser) -> None:
    parser.add_argument(
        "--results",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="run folders, folders with runs, or files of `drol results export` (default: the runs of the scale)",
    )
    parser.add_argument("--scale", choices=SCALES, default="paper", help="whose runs are taken (default: paper)")
    parser.add_argument("--root", type=Path, default=ROOT, help=f"where the runs are kept (default: {ROOT})")


def results_from(parsed: argparse.Namespace) -> Results:
    """Return the results that a command line names."""
    return results_of_scales(parsed, [parsed.scale])


def add_planned_result_flags(parser: Parser) -> None:
    """Add the flags of commands that read the runs of results/plan_2026-11-18.md, which has two scales."""
    parser.add_argument(
        "--results",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="run folders, folders with runs, or files of `drol results export` (default: the runs of the scales "
        f"{' and '.join(PLANNED_SCALES)})",
    )
    parser.add_argument("--root", type=Path, default=ROOT, help=f"where the runs are kept (default: {ROOT})")


def planned_results_from(parsed: argparse.Namespace) -> Results:
    """Return the results that a command line names, of the planned scales by default."""
    return results_of_scales(parsed, PLANNED_SCALES)


def results_of_scales(parsed: argparse.Namespace, scales: Iterable[str]) -> Results:
    folders = [parsed.root / scale for scale in scales]
    return collect_results(parsed.results or [folder for folder in folders if folder.is_dir()])
