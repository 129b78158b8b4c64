"""`drol train`."""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drol.algorithms import algorithm_name, find_algorithm, known_algorithms
from drol.cli.flags import Parser, add_fields, given, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.main import complain
from drol.errors import DAMAGE_SET_ASIDE, DIVERGED, InputError
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
from drol.training.own_data import METHOD, choose_settings
from drol.training.train import prepare_run, train_prepared

EPILOG = """examples:
  drol train                                    the embedded maze with the paper's settings (long on a CPU)
  drol train --preset laptop                    the same maze in minutes
  drol train --preset laptop --seeds 0 1 2      three seeds at once
  drol train antmaze-large-navigate-singletask-v0                          with its row of the paper's table, K = 16
  drol train antmaze-giant-navigate-singletask-v0 --preset paper-tuned     with the K that the paper chose for it
  drol train --preset laptop --online-steps 5000                           then fine-tune in the environment
  drol train TASK --from runs/other                                        start from the networks of another run
  drol train files/pendulum                                                your own data: sizes chosen for this machine
  drol train --import my_module --algorithm mine                           an algorithm that my_module.py registers

exit codes:
  0 finished   1 something failed   2 bad input   3 finished, but something in the folder was damaged, was named and set
  aside   4 diverged: the last checkpoint is finite, diverged.json says what happened   128 + n stopped by signal n

The same command again resumes a run that was stopped. Precedence: defaults, then the preset, then flags.
`drol algorithms show NAME` prints the settings of each task."""


def make_parser(algorithm: str) -> Parser:
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
        help="settings to start from: those of the task as printed or as in the released commands, with K = 16 or the "
        "tuned K; online: FQL's commands that go on online; small: the paper's with small networks and few updates; "
        "smoke: to see that it runs; laptop: that of the demo; own: networks and updates from the size of the data and "
        "the speed of this machine (default: paper, and own for files/...)",
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
    parser.add_argument(
        "--devices",
        type=whole_number,
        metavar="N",
        help="devices that share the seeds or, if they do not divide them, each batch (default: all)",
    )
    parser.add_argument(
        "--track",
        choices=tuple(PACKAGES),
        help="mirror the rows in a tracker, offline unless its variables say otherwise; it cannot stop the run",
    )
    add_fields(parser.add_argument_group("run"), dataclasses.fields(RunConfig))
    group = parser.add_argument_group(f"hyperparameters of {algorithm}")
    add_fields(group, dataclasses.fields(find_algorithm(algorithm)))
    return parser


def flags_of_others(name: str) -> dict[str, list[str]]:
    """Return the flags that the algorithm does not have, with the algorithms that have them."""
    own = {field.name for field in dataclasses.fields(find_algorithm(name))}
    flags: dict[str, list[str]] = {}
    for other in known_algorithms():
        for field in dataclasses.fields(find_algorithm(other)):
            if field.name not in own:
                flags.setdefault(f"--{field.name.replace('_', '-')}", []).append(other)
    return flags


def parse(arguments: list[str]) -> tuple[RunConfig, argparse.Namespace]:
    """Return the settings that a command line asks for; the algorithm is read first, because flags depend on it.

    With the preset "own", `run` replaces those that depend on the machine.
    """
    first = Parser("train", add_help=False)
    first.add_argument("--algorithm")
    name = first.parse_known_args(arguments)[0].algorithm
    if name is None:
        helpless = [word for word in arguments if word not in ("-h", "--help")]
        name = default_algorithm(make_parser(METHOD).parse_known_args(helpless)[0].task)
    parsed = make_parser(name).parse(arguments, flags_of_others(name))
    if is_number(parsed.task):
        raise InputError(f"{parsed.task} is not a task; most flags take one value, and `drol sweep` tries several")
    parsed.preset = parsed.preset or default_preset(parsed.task)
    return starting_settings(parsed.task, name, parsed.preset, **changes_of(parsed, name)), parsed


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
        print(f"drol: note: {note}", file=sys.stderr)  # only now, so that a mistake is answered with one line
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
    """Return the command that continues from the last checkpoint, in a new folder, at a third of the learning rate."""
    values = config.algorithm.to_dict()
    if "learning_rate" in values:
        values["learning_rate"] = float(f"{values['learning_rate'] / 3:.2g}")
    algorithm = type(config.algorithm).from_dict(values)
    slower = dataclasses.replace(config, algorithm=algorithm, start_from=str(folder))
    return train_command(slower, Path(f"{folder}-slower"))


def conclude(trained: Run) -> int:
    """Print how a run ended and return the exit code."""
    if trained.stopped_by is not None:
        rest = f"goes on from step {trained.step:,} of {trained.config.total_steps:,}"
        rest = "makes the evaluations that are missing" if trained.finished else rest
        print(f"stopped; the same command {rest}, saved in {trained.path}")
        return 128 + trained.stopped_by
    scores = trained.scores
    if scores:
        print(f"score after {trained.step:,} updates: {' '.join(f'{score:.1f}' for score in scores)}")
    print(f"run: {trained.path}")
    return DAMAGE_SET_ASIDE if trained.damaged else 0
