"""`drol train`."""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from drol.algorithms import algorithm_name, find_algorithm, known_algorithms
from drol.cli.flags import Parser, add_fields, given, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.main import complain
from drol.errors import CORRUPTED_FILES, DIVERGED, InputError
from drol.evaluation.episodes import EnvironmentFailed
from drol.planning.command import train_command
from drol.presets.scales import SHRUNK
from drol.presets.settings import (
    LAPTOP,
    ONLINE,
    OWN,
    PRESETS,
    default_algorithm,
    default_preset,
    notes_on,
    starting_settings,
)
from drol.runs.config import RunConfig
from drol.runs.run import Run
from drol.tasks import DEFAULT_TASK
from drol.tracking import PACKAGES
from drol.training.divergence import Diverged
from drol.training.own_data import CHOSEN, METHOD, choose_settings
from drol.training.train import prepare_run, train_prepared

EPILOG = """examples:
  drol train                                    the embedded maze with the paper's settings (long on a CPU)
  drol train --preset laptop                    the same maze in minutes
  drol train --preset laptop --seeds 0 1 2      three seeds at once
  drol train antmaze-large-navigate-singletask-v0                          settings of the paper's table, K = 16
  drol train antmaze-giant-navigate-singletask-v0 --preset paper-tuned     K tuned for this task in the paper
  drol train --preset laptop --online-steps 5000                           then fine-tune in the environment
  drol train TASK --from runs/other                                        start from the networks of another run
  drol train files/pendulum                                                your own data: sizes fit data and machine
  drol train --import my_module --algorithm mine                           an algorithm that my_module.py registers

exit codes:
  0        finished
  1        failed
  2        invalid input
  3        finished, but corrupted files were found and quarantined
  4        diverged; the last checkpoint is finite and diverged.json describes the divergence
  128 + n  stopped by signal n

The same command resumes a stopped run. Flags override the preset, which overrides the defaults of the algorithm.
`drol algorithms show NAME` prints the settings of each task."""


def make_parser(algorithm: str, defaults: Mapping[str, Any] | None = None) -> Parser:
    """Return the parser of an algorithm; its help text shows `defaults` where they differ from the fields' own."""
    names = ", ".join(known_algorithms())
    parser = Parser("train", "Train an algorithm on the dataset of a task.", EPILOG)
    parser.add_argument(
        "task", nargs="?", default=DEFAULT_TASK, help=f"a task of `drol data list --all` (default: {DEFAULT_TASK})"
    )
    parser.add_argument(
        "--algorithm", metavar="NAME", help=f"one of {names} (default: drol, and {METHOD} for files/...)"
    )
    parser.add_argument(
        "--preset",
        choices=(*PRESETS, ONLINE, *SHRUNK, LAPTOP, OWN),
        help="initial settings. paper, released: those of the task in the paper or the released commands, with K = 16; "
        "-tuned: with the tuned K; online: FQL's commands for offline-to-online training; short, medium, small: the "
        "paper's with fewer updates, smaller networks or both; smoke: a one-minute test; laptop: those of the demo; "
        "own: networks and updates chosen from the size of the data and the speed of this machine (default: paper, "
        "and own for files/...)",
    )
    parser.add_argument(
        "--out", type=Path, help="run folder (default: runs/<task>/<algorithm>-<digest of the settings>)"
    )
    parser.add_argument("--processes", type=whole_number, metavar="N", help="parallel environments in evaluations")
    parser.add_argument(
        "--background-evaluation",
        action="store_true",
        help="evaluate while training continues; the scores are the same",
    )
    parser.add_argument("--quiet", action="store_true", help="print only the result, no progress")
    parser.add_argument(
        "--devices",
        type=whole_number,
        metavar="N",
        help="devices to use; they split the seeds, or each batch if the seeds cannot be divided evenly (default: all)",
    )
    parser.add_argument(
        "--track",
        choices=tuple(PACKAGES),
        help="also send the metrics to this tracker: offline, unless its environment variables enable uploads; its "
        "errors do not stop the run",
    )
    add_fields(parser.add_argument_group("run"), dataclasses.fields(RunConfig), defaults)
    group = parser.add_argument_group(f"hyperparameters of {algorithm}")
    add_fields(group, dataclasses.fields(find_algorithm(algorithm)), defaults)
    return parser


def flags_of_others(name: str) -> dict[str, list[str]]:
    """Return the flags that only other algorithms have, with the names of these algorithms."""
    own = {field.name for field in dataclasses.fields(find_algorithm(name))}
    flags: dict[str, list[str]] = {}
    for other in known_algorithms():
        for field in dataclasses.fields(find_algorithm(other)):
            if field.name not in own:
                flags.setdefault(f"--{field.name.replace('_', '-')}", []).append(other)
    return flags


def parse(arguments: list[str]) -> tuple[RunConfig, argparse.Namespace]:
    """Return the settings of a command line and the parsed flags.

    The algorithm is parsed first, because the flags depend on it. With the preset "own", `run` replaces the settings
    that depend on the machine.
    """
    first = Parser("train", add_help=False)
    first.add_argument("--algorithm")
    name = first.parse_known_args(arguments)[0].algorithm
    helpless, defaults = [word for word in arguments if word not in ("-h", "--help")], None
    if name is None or helpless != arguments:
        draft = make_parser(name or METHOD).parse_known_args(helpless)[0]
        name = name or default_algorithm(draft.task)
        if helpless != arguments:
            defaults = defaults_of(draft.task, name, draft.preset)
    parsed = make_parser(name, defaults).parse(arguments, flags_of_others(name))
    if is_number(parsed.task):
        raise InputError(f"{parsed.task} is not a task; most flags take one value, and `drol sweep` tries several")
    parsed.preset = parsed.preset or default_preset(parsed.task)
    return starting_settings(parsed.task, name, parsed.preset, **changes_of(parsed, name)), parsed


def defaults_of(task: str, algorithm: str, preset: str | None) -> dict[str, Any]:
    """Return the values that a preset gives to the settings of a task, for the help text."""
    preset = preset or default_preset(task)
    config = starting_settings(task, algorithm, preset)
    chosen = dict.fromkeys(CHOSEN if preset == OWN else (), "chosen from the data and the speed of this machine")
    return {**vars(config), **vars(config.algorithm), **chosen}


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def changes_of(parsed: argparse.Namespace, algorithm: str) -> dict[str, Any]:
    """Return the settings that were given as flags."""
    fields = (*dataclasses.fields(RunConfig), *dataclasses.fields(find_algorithm(algorithm)))
    return {key: value for key, value in given(parsed, fields).items() if key not in ("algorithm", "task")}


def run(arguments: list[str]) -> int:
    config, parsed = parse(arguments)
    keep_compiled_programs()
    if parsed.quiet:
        logging.getLogger("drol").setLevel(logging.WARNING)
    folder, task = parsed.out or Path("runs") / config.folder_name(), None
    if parsed.preset == OWN:
        task, changes = config.load_task(), changes_of(parsed, algorithm_name(config.algorithm))
        choice = choose_settings(config, changes, task, folder, parsed.devices)
        config = choice.config
        print(choice.words, flush=True)
    prepared = prepare_run(config, folder, task, parsed.processes, parsed.devices, parsed.track)
    for note in notes_on(config, parsed.preset):
        print(f"drol: note: {note}", file=sys.stderr)  # after the checks, so that an error is the only line
    return finish(config, folder, lambda: train_prepared(prepared, parsed.quiet, parsed.background_evaluation))


def finish(config: RunConfig, folder: Path, train: Callable[[], Run]) -> int:
    """Train a run, print how it ended and return the exit code."""
    try:
        trained = train()
    except Diverged as error:
        return complain(f"{error}: {slower_command(config, folder)}", DIVERGED)
    except EnvironmentFailed as error:
        return complain(error, 1)
    return conclude(trained)


def slower_command(config: RunConfig, folder: Path) -> str:
    """Return a command that continues from the last checkpoint in a new folder with a third of the learning rate."""
    values = config.algorithm.to_dict()
    if "learning_rate" in values:
        values["learning_rate"] = float(f"{values['learning_rate'] / 3:.2g}")
    algorithm = type(config.algorithm).from_dict(values)
    slower = dataclasses.replace(config, algorithm=algorithm, start_from=str(folder))
    return train_command(slower, Path(f"{folder}-slower"))


def conclude(trained: Run) -> int:
    """Print how a run ended and return the exit code."""
    if trained.stopped_by is not None:
        rest = f"resumes from step {trained.step:,} of {trained.config.total_steps:,}"
        rest = "runs the missing evaluations" if trained.finished else rest
        print(f"stopped; the same command {rest}, saved in {trained.path}")
        return 128 + trained.stopped_by
    scores = trained.scores
    if scores:
        print(f"score after {trained.step:,} updates: {' '.join(f'{score:.1f}' for score in scores)}")
    print(f"run: {trained.path}")
    return CORRUPTED_FILES if trained.damaged else 0
