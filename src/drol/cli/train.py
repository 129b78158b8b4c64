"""`drol train`."""

import argparse
import dataclasses
import signal
from pathlib import Path

from drol.algorithms import ALGORITHMS, find_algorithm
from drol.cli.flags import Parser, add_fields, given, whole_number
from drol.cli.main import complain
from drol.cli.runtime import prepare_jax
from drol.tasks import DEFAULT_TASK, find_source
from drol.training.config import PRESETS, RunConfig
from drol.training.trainer import Diverged, Outcome, train

EPILOG = """examples:
  drol train                                    the embedded maze with the paper's settings (long on a CPU)
  drol train --preset laptop                    the same maze in minutes
  drol train --preset laptop --seeds 0 1 2      three seeds at once
  drol train antmaze-large-navigate-singletask-v0 --bc-weight 0.03 --discount 0.995 --q-aggregation min

The same command again resumes a run that was stopped. Precedence: defaults, then the preset, then flags."""


def make_parser(algorithm: str) -> Parser:
    parser = Parser("train", "Train an algorithm on the dataset of a task.", EPILOG)
    parser.add_argument(
        "task", nargs="?", default=DEFAULT_TASK, help=f"an OGBench single task (default: {DEFAULT_TASK})"
    )
    parser.add_argument(
        "--algorithm", default="drol", metavar="NAME", help=f"one of {', '.join(ALGORITHMS)} (default: drol)"
    )
    parser.add_argument("--preset", choices=PRESETS, default="paper", help="settings to start from (default: paper)")
    parser.add_argument(
        "--out", type=Path, help="run folder (default: runs/<task>/<algorithm>-<digest of the settings>)"
    )
    parser.add_argument("--processes", type=whole_number, metavar="N", help="environments at once in evaluations")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    add_fields(parser.add_argument_group("run"), dataclasses.fields(RunConfig))
    group = parser.add_argument_group(f"hyperparameters of {algorithm}")
    add_fields(group, dataclasses.fields(find_algorithm(algorithm)))
    return parser


def parse(arguments: list[str]) -> tuple[RunConfig, argparse.Namespace]:
    """The run that a command line asks for; the algorithm is read first, because the flags depend on it."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--algorithm", default="drol")
    name = first.parse_known_args(arguments)[0].algorithm
    parsed = make_parser(name).parse(arguments)
    find_source(parsed.task)
    kind = find_algorithm(name)
    hyperparameters = {**kind.presets.get(parsed.preset, {}), **given(parsed, dataclasses.fields(kind))}
    settings = {**PRESETS[parsed.preset], **given(parsed, dataclasses.fields(RunConfig))}
    settings |= {"algorithm": kind(**hyperparameters), "task": parsed.task}
    return RunConfig(**settings), parsed


def run(arguments: list[str]) -> int:
    config, parsed = parse(arguments)
    folder = parsed.out or Path("runs") / config.folder_name()
    prepare_jax()
    try:
        outcome = train(config, folder, processes=parsed.processes, quiet=parsed.quiet)
    except Diverged as error:
        return complain(error, 1)
    return conclude(outcome, config)


def conclude(outcome: Outcome, config: RunConfig) -> int:
    """Say how it ended; the exit code."""
    path = outcome.directory.path
    if outcome.stopped_by is not None and outcome.step < config.steps:
        print(f"stopped at step {outcome.step:,} of {config.steps:,} and saved in {path}; the same command goes on")
        return 128 + outcome.stopped_by if outcome.stopped_by == signal.SIGTERM else 130
    if outcome.scores:
        scores = " ".join(f"{score:.1f}" for score in outcome.scores)
        print(f"score after {outcome.step:,} updates: {scores}")
    print(f"run: {path}")
    return 0
