"""`drol bench`."""

import importlib.util
import json
import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drol.algorithms import ALGORITHMS, find_algorithm
from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import prepare_jax
from drol.errors import InputError
from drol.experiments.bench.machine import EVALUATION_SECONDS, describe_machine, measure_evaluation, measure_start
from drol.experiments.bench.methods import candidate_ladder, make_algorithms, measure_speed
from drol.experiments.bench.timers import Against, load_against, random_dataset
from drol.progress import duration
from drol.tasks import DEFAULT_TASK, find_source

PARTS = ("start", "evaluation", "speed")
PARTS_HELP = "start: memory and compile time; evaluation: steps; speed: updates and actions (default: all)"
QUICK_METHODS, QUICK_ROUNDS, QUICK_EPISODES = ("drol", "fql"), 2, 8
EPISODES = 50
EVALUATION_ROUNDS = 3  # at most; each takes seconds
EPILOG = """examples:
  drol bench                                         every method; half an hour or more on two cores
  drol bench --quick                                 a first look
  drol bench --methods drol fql --json speed.json --figure speed.png
  drol bench --parts evaluation --methods drol --task cube-single-play-singletask-task1-v0
  drol bench --methods drol --parts speed --against their_code:make_update

--against takes the place of a function that takes nothing and returns a callable which makes one update and waits for
it; the ratio is our time over theirs, taken in the same rounds. their_code.py in this folder could hold:

  def make_update():
      agent, batch = ...                  # built and compiled here
      def update():
          agent.update(batch).block_until_ready()
      return update                       # or: return update, "a name to print"

The bound is the time that the matrix products of an update take at the rate of [4096, 512] x [512, 512] here."""


def run(arguments: list[str]) -> int:
    parsed = read_arguments(arguments)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other processes of ours need the GPU as well
    prepare_jax()
    against = load_against(parsed.against) if parsed.against else None
    machine = describe_machine()
    print(f"{machine['device']}, jax {machine['jax']}", file=sys.stderr)
    results = measure(parsed, machine, against)
    if parsed.json:
        parsed.json.write_text(json.dumps(results, indent=2) + "\n")
    if parsed.figure:
        from drol.experiments.bench.figure import bench_figure

        bench_figure(results).savefig(parsed.figure, dpi=160)
    print(report(results))
    for path in (parsed.json, parsed.figure):
        if path:
            print(f"wrote {path}")
    return 0


def read_arguments(arguments: list[str]) -> Namespace:
    """The options, all of them checked before anything is measured."""
    parser = Parser("bench", "How fast every method is on this machine, and what it needs.", EPILOG)
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=f"of {' '.join(ALGORITHMS)} (default: all)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help=PARTS_HELP)
    parser.add_argument("--rounds", type=whole_number, metavar="N", help="how often all is timed (default: 5)")
    parser.add_argument("--seeds", type=whole_number, default=8, metavar="N", help="seeds at once (default: 8)")
    parser.add_argument(
        "--preset", choices=("paper", "laptop"), default="paper", help="size of the networks (default: paper)"
    )
    parser.add_argument("--quick", action="store_true", help="two methods and few rounds")
    parser.add_argument(
        "--task",
        metavar="NAME",
        help=f"environment of the evaluations; its data is not needed (default: {DEFAULT_TASK})",
    )
    parser.add_argument(
        "--episodes",
        type=whole_number,
        metavar="N",
        help="of one evaluation, cut at 200 steps (default: 50, or what a method can play in some seconds)",
    )
    parser.add_argument("--against", metavar="PATH", help="module:function that makes another code's update; see below")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw them (.png, .svg or .pdf)")
    parsed = parser.parse(arguments)
    parsed.methods = list(dict.fromkeys(parsed.methods or (QUICK_METHODS if parsed.quick else ALGORITHMS)))
    parsed.rounds = (QUICK_ROUNDS if parsed.quick else 5) if parsed.rounds is None else parsed.rounds
    for name in parsed.methods:
        find_algorithm(name)
    for name in ("rounds", "seeds", "episodes"):
        value = getattr(parsed, name)
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    for path in (parsed.json, parsed.figure):
        if path and not path.absolute().parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    if parsed.figure:
        check_figure(parsed.figure, parsed.parts)
    if parsed.against and "speed" not in parsed.parts:
        raise InputError("--against is timed in the part speed; add it to --parts")
    check_task(parsed)
    return parsed


def check_figure(path: Path, parts: list[str]) -> None:
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"the figure is {path}; its name must end in .png, .svg or .pdf")
    if "speed" not in parts:
        raise InputError("--figure shows the part speed; add it to --parts")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib; install it with: pip install 'drol[report]'")


def check_task(parsed: Namespace) -> None:
    """Refuse a task that is not known; without a simulator only what needs none is measured."""
    if parsed.task:
        find_source(parsed.task)
    if "evaluation" not in parsed.parts or importlib.util.find_spec("gymnasium"):
        return
    if parsed.task or list(parsed.parts) == ["evaluation"]:
        raise InputError("evaluations need a simulator; install one with: pip install 'drol[ogbench]'")
    parsed.parts = [part for part in parsed.parts if part != "evaluation"]
    print("no evaluations: they need pip install 'drol[ogbench]'", file=sys.stderr)


def measure(parsed: Namespace, machine: dict[str, Any], against: Against | None) -> dict[str, Any]:
    """Everything that was asked for, as JSON can hold it."""
    algorithms = make_algorithms(parsed.methods, parsed.preset)
    rows: dict[str, dict[str, Any]] = {name: {} for name in algorithms}
    results = {**machine, "preset": parsed.preset, "rounds": parsed.rounds, "seeds": parsed.seeds, "ladder": {}}
    if "start" in parsed.parts:
        found = measure_start(algorithms, say=progress("memory and compile time"))
        rows = {name: rows[name] | found[name] for name in rows}
    if "evaluation" in parsed.parts:
        results["task"] = parsed.task or DEFAULT_TASK
        rounds = min(parsed.rounds, EVALUATION_ROUNDS)
        seconds = EVALUATION_SECONDS if parsed.episodes is None else math.inf
        episodes = parsed.episodes or (QUICK_EPISODES if parsed.quick else EPISODES)
        say = progress("evaluation")
        found = measure_evaluation(algorithms, results["task"], episodes, rounds, seconds, say=say)
        rows = {name: rows[name] | found[name] for name in rows}
    if "speed" in parsed.parts:
        ladder = {} if parsed.quick else candidate_ladder(algorithms)
        say = progress("updates and actions")
        speed = measure_speed(algorithms, ladder, random_dataset(), parsed.rounds, parsed.seeds, against, say)
        found = speed.pop("methods")
        rows = {name: rows[name] | found[name] for name in rows}
        results |= speed
    return results | {"methods": rows}


def progress(part: str) -> Callable[[str, int, int], None]:
    """Lines on stderr, not more than one in two seconds: what is measured, and how long this part still takes."""
    began = said = time.monotonic() - 2

    def say(what: str, done: int, total: int) -> None:
        nonlocal began, said
        now = time.monotonic()
        began = now if done == 0 else began  # compiling says nothing about how long the rest takes
        if now - said < 2:
            return
        said = now
        left = f", about {duration((now - began) / done * (total - done))} left of this part" if done else ""
        print(f"{part}: {what}{left}", file=sys.stderr, flush=True)

    return say


# Two lines of heading, the entry of a method's row, how it is printed and by what it is multiplied before.
COLUMNS: tuple[tuple[str, str, tuple[str, ...], str, float], ...] = (
    ("updates", "/s", ("updates_per_second",), ",.1f", 1),
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


def report(results: dict[str, Any]) -> str:
    """The table, and below it what belongs to no single method."""
    lines = [f"{results['device']}, jax {results['jax']}, {results['preset']} networks, {results['rounds']} rounds", ""]
    columns = [["", "", *results["methods"]]]
    seen = set()
    for first, second, path, form, factor in COLUMNS:
        entries = [entry.format(**results) for entry in path]
        values = [look_up(row, entries) for row in results["methods"].values()]
        if all(value is None for value in values) or tuple(entries) in seen:
            continue
        seen.add(tuple(entries))
        cells = ["-" if value is None else format(factor * value, form) for value in values]
        columns.append([first.format(**results), second.format(**results), *cells])
    widths = [max(map(len, column)) for column in columns]
    for cells in zip(*columns, strict=True):
        name, *rest = (f"{cell:{'<' if index == 0 else '>'}{widths[index]}}" for index, cell in enumerate(cells))
        lines.append("  ".join([name, *rest]).rstrip())
    return "\n".join([*lines, "", *notes(results)])


def look_up(row: dict[str, Any], entries: list[str]) -> float | None:
    value: Any = row
    for entry in entries:
        value = value.get(entry) if value else None
    return value


def notes(results: dict[str, Any]) -> list[str]:
    """What the columns mean, and the ratios that are worth a line of their own."""
    methods = results["methods"]
    lines = []
    if "matmul_gflops" in results:
        bare = results["numpy_forward_p50_milliseconds"]
        ratios = ", ".join(f"{name} {row['latency_over_numpy']:.2f}" for name, row in methods.items())
        lines.append(f"matrix product [4096, 512] x [512, 512]: {results['matmul_gflops']:.0f} GFLOP/s")
        lines.append(f"the bare network in NumPy takes {bare:.2f} ms (p50); an action takes, in these: {ratios}")
        ladder = {name: 1000 / row["updates_per_second"] for name, row in results["ladder"].items()}
        ordered = sorted(ladder, key=lambda name: int(name.split("=")[1]))
        if ordered:
            lines.append("an update of " + ", ".join(f"{name}: {ladder[name]:.1f} ms" for name in ordered))
    if "task" in results:
        gains = {name: row["evaluation_gain_of_two_cores"] for name, row in methods.items()}
        words = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items() if gain)
        lines.append(f"evaluation in {results['task']}" + (f"; two cores over one: {words}" if words else ""))
    if any("peak_memory_bytes" in row for row in methods.values()):
        lines.append(
            "memory: resident peak of a fresh process that compiles and trains on a million transitions (29, 8)"
        )
        lines.append(
            "compile: from the call to the end of the first update, without and with the compiled program on disk"
        )
    if "against" in results:
        theirs = results["against"]
        for name, ratio in theirs["ratio"].items():
            ours = 1000 / methods[name]["updates_per_second"]
            lines.append(
                f"{name} {ours:.2f} ms an update, {theirs['name']} {theirs['milliseconds']:.2f} ms; "
                f"ours over theirs: {ratio:.2f}"
            )
    return lines
