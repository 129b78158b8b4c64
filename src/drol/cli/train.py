"""`drol train`."""

import argparse
import dataclasses
import signal
import sys
from pathlib import Path

from drol.algorithms import ALGORITHMS, find_algorithm
from drol.cli.flags import Parser, add_fields, given, whole_number
from drol.cli.jax_cache import prepare_jax
from drol.cli.main import complain
from drol.errors import InputError
from drol.paper.presets import PRESETS as PAPER_PRESETS
from drol.paper.presets import Settings, task_settings
from drol.runs.config import PRESETS, RunConfig
from drol.runs.directory import RunDirectory
from drol.tasks import DEFAULT_TASK, find_source, load_task
from drol.training.online import EnvironmentFailed
from drol.training.placement import join
from drol.training.trainer import Diverged, Outcome, check_same_run, train

EPILOG = """examples:
  drol train                                    the embedded maze with the paper's settings (long on a CPU)
  drol train --preset laptop                    the same maze in minutes
  drol train --preset laptop --seeds 0 1 2      three seeds at once
  drol train antmaze-large-navigate-singletask-v0                          with its row of the paper's table, K = 16
  drol train antmaze-giant-navigate-singletask-v0 --preset paper-tuned     with the K that the paper chose for it
  drol train --preset laptop --online-steps 5000                           then fine-tune in the environment

The same command again resumes a run that was stopped. Precedence: defaults, then the preset, then flags.
`drol algorithms show NAME` prints the settings of each task."""


def make_parser(algorithm: str) -> Parser:
    parser = Parser("train", "Train an algorithm on the dataset of a task.", EPILOG)
    parser.add_argument(
        "task", nargs="?", default=DEFAULT_TASK, help=f"a task of `drol data list --all` (default: {DEFAULT_TASK})"
    )
    parser.add_argument(
        "--algorithm", default="drol", metavar="NAME", help=f"one of {', '.join(ALGORITHMS)} (default: drol)"
    )
    parser.add_argument(
        "--preset",
        choices=(*PAPER_PRESETS, *PRESETS),
        default="paper",
        help="settings to start from: those of the task as printed or as in the released commands, with K = 16 or the "
        "tuned K, or small networks for a laptop (default: paper)",
    )
    parser.add_argument(
        "--out", type=Path, help="run folder (default: runs/<task>/<algorithm>-<digest of the settings>)"
    )
    parser.add_argument("--processes", type=whole_number, metavar="N", help="environments at once in evaluations")
    parser.add_argument(
        "--background-evaluation",
        action="store_true",
        help="evaluate while training goes on; the scores are the same",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    group = parser.add_argument_group("devices")
    group.add_argument(
        "--devices",
        type=whole_number,
        metavar="N",
        help="devices that share the seeds or, if they do not divide them, each batch (default: all)",
    )
    group.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="train with several processes: where the first of them listens; give all of them the same command",
    )
    group.add_argument(
        "--process-count", type=whole_number, default=1, metavar="N", help="how many processes there are"
    )
    group.add_argument("--process-index", type=whole_number, default=0, metavar="I", help="which one this is, from 0")
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
    settings = preset_settings(parsed.task, name, parsed.preset)
    hyperparameters = {**settings.hyperparameters, **given(parsed, dataclasses.fields(kind))}
    values = {**settings.run, **given(parsed, dataclasses.fields(RunConfig))}
    values |= {"algorithm": kind(**hyperparameters), "task": parsed.task}
    parsed.notes = settings.notes
    return RunConfig(**values), parsed


def preset_settings(task: str, algorithm: str, preset: str) -> Settings:
    """What a preset gives before flags; the presets of the paper depend on the task, the others do not."""
    if preset in PAPER_PRESETS:
        return task_settings(task, algorithm, preset)
    return Settings({**find_algorithm(algorithm).presets.get(preset, {})}, PRESETS[preset], notes=(), source="drol")


def run(arguments: list[str]) -> int:
    config, parsed = parse(arguments)
    folder = parsed.out or Path("runs") / config.folder_name()
    join_processes(parsed)
    prepare_jax()
    check_same_run(RunDirectory(folder), config)
    task = load_task(config.task, Path(config.dataset) if config.dataset else None)
    for note in parsed.notes:  # only now, so that a mistake is still answered with one line
        print(f"drol: note: {note}", file=sys.stderr)
    try:
        outcome = train(
            config, folder, task, parsed.processes, parsed.quiet, parsed.background_evaluation, parsed.devices
        )
    except (Diverged, EnvironmentFailed) as error:
        return complain(error, 1)
    if parsed.process_index > 0:
        print(f"followed process 0 to step {outcome.step:,}")
        return 0
    return conclude(outcome, config)


def join_processes(parsed: argparse.Namespace) -> None:
    """Meet the other processes, if there are any."""
    if parsed.coordinator:
        join(parsed.coordinator, parsed.process_count, parsed.process_index)
    elif (parsed.process_count, parsed.process_index) != (1, 0):
        raise InputError("--process-count and --process-index need --coordinator HOST:PORT, where process 0 listens")


def conclude(outcome: Outcome, config: RunConfig) -> int:
    """Say how it ended; the exit code."""
    path = outcome.directory.path
    if outcome.stopped_by is not None and outcome.step < config.total_steps:
        print(
            f"stopped; the same command goes on from step {outcome.saved_step:,} of {config.total_steps:,}, "
            f"saved in {path}"
        )
        return 128 + outcome.stopped_by if outcome.stopped_by == signal.SIGTERM else 130
    if outcome.scores:
        scores = " ".join(f"{score:.1f}" for score in outcome.scores)
        print(f"score after {outcome.step:,} updates: {scores}")
    print(f"run: {path}")
    return 0
