"""`drol bench`."""

import importlib.util
import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from drol.algorithms import find_algorithm, known_algorithms
from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.progress import Progress
from drol.storage import write_whole
from drol.tasks import DEFAULT_TASK
from drol_reproduction.bench.measure import PARTS, bench
from drol_reproduction.bench.methods import CANDIDATES

PARTS_HELP = "start: memory and compile time; evaluation: steps; speed: updates and actions (default: all)"
QUICK = {"methods": ["drol", "fql"], "rounds": 2, "episodes": 8, "candidates": (), "seeds": 1}
QUICK_PARTS = ["speed"]  # the others start processes that train or play for minutes
EPILOG = """examples:
  drol bench                                         every method; half an hour or more on two cores
  drol bench --quick                                 a first look
  drol bench --methods drol fql --json speed.json    `drol paper figure 3 --bench speed.json` draws it
  drol bench --parts evaluation --methods drol --task cube-single-play-singletask-task1-v0
  drol bench --methods drol --parts speed --against benchmarks.one_pass:make_update

--against names a function without arguments. It returns a callable that runs one update and waits for its end. The
printed ratio is drol's time divided by that of the callable, measured in the same rounds. Example (their_code.py):

  def make_update():
      agent, batch = ...                  # built and compiled here
      def update():
          agent.update(batch).block_until_ready()
      return update                       # or: return update, "name to print"

The bound is the time of an update's matrix products at the speed of [4096, 512] x [512, 512] on this machine."""


def run(arguments: list[str]) -> int:
    options, parsed = read_arguments(arguments)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the child processes need GPU memory too
    keep_compiled_programs()
    with Progress("bench", "measurements") as progress:
        results = bench(**options, report=progress.show)
    if parsed.json:
        write_whole(parsed.json, json.dumps(results, indent=2) + "\n")
    print(table(results))
    if parsed.json:
        print(f"wrote {parsed.json}")
    return 0


def read_arguments(arguments: list[str]) -> tuple[dict[str, Any], Namespace]:
    """Return the arguments of `bench` and the parsed flags; reject output files that cannot be written."""
    parser = Parser("bench", "Measure the speed and the memory of every method on this machine.", EPILOG)
    names = " ".join(known_algorithms())
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=f"methods to measure: {names} (default: all)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help=PARTS_HELP)
    parser.add_argument("--rounds", type=whole_number, metavar="N", help="repetitions of each timing (default: 5)")
    parser.add_argument("--seeds", type=whole_number, metavar="N", help="seeds trained at once (default: 8)")
    parser.add_argument(
        "--preset", choices=("paper", "laptop"), default="paper", help="size of the networks (default: paper)"
    )
    parser.add_argument("--quick", action="store_true", help="measure only the speed of two methods (about a minute)")
    parser.add_argument(
        "--task",
        metavar="NAME",
        help=f"environment of the evaluations, used without its data (default: {DEFAULT_TASK})",
    )
    parser.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="episodes per evaluation, at most 200 steps each (default: 50, or fewer for a slow method)",
    )
    parser.add_argument("--against", metavar="PATH", help="module:function that returns other code's update; see below")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements to this file")
    parsed = parser.parse(arguments)
    parsed.parts = parsed.parts or (QUICK_PARTS if parsed.quick else list(PARTS))
    for name in parsed.methods or ():
        find_algorithm(name)
    if parsed.json and not parsed.json.absolute().parent.is_dir():
        raise InputError(f"cannot write {parsed.json}: the folder {parsed.json.absolute().parent} does not exist")
    given = {name: getattr(parsed, name) for name in ("methods", "rounds", "episodes", "seeds")}
    given = {name: value for name, value in given.items() if value is not None}
    options = {"rounds": 5, "candidates": CANDIDATES, "seeds": 8} | (QUICK if parsed.quick else {}) | given
    rest = {name: getattr(parsed, name) for name in ("preset", "against")}
    return options | rest | {"parts": measurable(parsed), "task": parsed.task or DEFAULT_TASK}, parsed


def measurable(parsed: Namespace) -> list[str]:
    """Return the requested parts that can be measured here; evaluations need a simulator."""
    parts = list(parsed.parts)
    if "evaluation" not in parts or importlib.util.find_spec("gymnasium"):
        return parts
    if parsed.task or parts == ["evaluation"]:
        raise InputError("evaluations need a simulator; install one with: pip install 'drol[ogbench]'")
    print("skipping evaluations: they need pip install 'drol[ogbench]'", file=sys.stderr)
    return [part for part in parts if part != "evaluation"]


# Two lines of heading, the path of the value in a method's row, its format and its factor.
COLUMNS: tuple[tuple[str, str, tuple[str, ...], str, float], ...] = (
    ("updates", "/s", ("updates_per_second",), ",.1f", 1),
    ("time", "/drol", ("over_drol",), ".2f", 1),
    ("{seeds} seeds", "/s in all", ("seeds_updates_per_second",), ",.1f", 1),
    ("of the", "bound", ("share_of_bound",), ".0%", 1),
    ("actions", "/s", ("actions_per_second", "1"), ",.0f", 1),
    ("64 at", "once /s", ("actions_per_second", "64"), ",.0f", 1),
    ("1024 at", "once /s", ("actions_per_second", "1024"), ",.0f", 1),
    ("latency", "p50 ms", ("latency_p50_milliseconds",), ".2f", 1),
    ("latency", "p99 ms", ("latency_p99_milliseconds",), ".2f", 1),
    ("steps/s", "1 core", ("evaluation_steps_per_second", "1"), ",.0f", 1),
    ("steps/s", "2 cores", ("evaluation_steps_per_second", "2"), ",.0f", 1),
    ("steps/s", "{cores} cores", ("evaluation_steps_per_second", "{cores}"), ",.0f", 1),
    ("memory", "GB", ("peak_memory_bytes",), ".2f", 1e-9),
    ("GPU", "GB", ("peak_device_memory_bytes",), ".2f", 1e-9),
    ("compile", "s", ("compile_seconds",), ".1f", 1),
    ("cached", "s", ("compile_seconds_from_cache",), ".1f", 1),
)


def table(results: dict[str, Any]) -> str:
    """Return a line for each method, then the notes on all methods."""
    lines = [f"{results['device']}, jax {results['jax']}, {results['preset']} networks, {results['rounds']} rounds", ""]
    columns: dict[tuple[str, ...], list[str]] = {("",): ["", "", *results["methods"]]}
    for first, second, path, form, factor in COLUMNS:
        entries = tuple(entry.format(**results) for entry in path)
        if "seeds" in first and results["seeds"] == 1:  # the column of updates has it
            continue
        values = [look_up(row, entries) for row in results["methods"].values()]
        if any(value is not None for value in values):  # omit the column of two cores if there are no more
            cells = ["-" if value is None else format(factor * value, form) for value in values]
            columns[entries] = [first.format(**results), second.format(**results), *cells]
    widths = [max(map(len, column)) for column in columns.values()]
    for name, *cells in zip(*columns.values(), strict=True):
        rest = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *rest]).rstrip())
    return "\n".join([*lines, "", *notes(results)])


def look_up(row: dict[str, Any], entries: tuple[str, ...]) -> float | None:
    value: Any = row
    for entry in entries:
        value = value.get(entry) if value else None
    return value


def notes(results: dict[str, Any]) -> list[str]:
    """Return the meaning of the columns, and the ratios that have a separate line."""
    methods, ladder = results["methods"], results["ladder"]
    lines = []
    if "matmul_gflops" in results:
        bare = results["numpy_forward_p50_milliseconds"]
        ratios = ", ".join(f"{name} {row['latency_over_numpy']:.2f}" for name, row in methods.items())
        lines.append(f"matrix product [4096, 512] x [512, 512]: {results['matmul_gflops']:.0f} GFLOP/s")
        lines.append(
            f"the bare network in NumPy takes {bare:.2f} ms (p50); an action takes this many times as long: {ratios}"
        )
    if len(ladder) > 1:
        times = {name: 1000 / row["updates_per_second"] for name, row in ladder.items()}
        words = ", ".join(f"{name} {times[name]:.1f} ms ({row['over_drol']:.2f})" for name, row in ladder.items())
        lines.append(f"time of an update (and divided by that of drol): {words}")
    if "task" in results:
        gains = {name: row["evaluation_gain_of_two_cores"] for name, row in methods.items()}
        words = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items() if gain)
        lines.append(f"evaluation in {results['task']}" + (f"; speed on two cores over one: {words}" if words else ""))
    if any("peak_memory_bytes" in row for row in methods.values()):
        lines.append("memory: peak resident memory of a new process that compiles and trains on a million transitions")
        lines.append(
            "compile: time from the call to the end of the first update; cached: with the program already on disk"
        )
    for name, ratio in results.get("against", {}).get("ratio", {}).items():
        ours, theirs = 1000 / methods[name]["updates_per_second"], results["against"]
        times = f"{name} {ours:.2f} ms per update, {theirs['name']} {theirs['milliseconds']:.2f} ms"
        lines.append(f"{times}; ours over theirs: {ratio:.2f}")
    return lines
