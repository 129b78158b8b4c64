"""`drol train`."""

import argparse
import dataclasses
import shlex
import sys
from pathlib import Path

from drol.algorithms import find_algorithm, known_algorithms
from drol.cli.flags import Parser, add_fields, given, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.main import complain
from drol.errors import DAMAGE_SET_ASIDE, DIVERGED
from drol.evaluation.episodes import EnvironmentFailed
from drol.paper.presets import LAPTOP, ONLINE, PRESETS, notes_on, settings
from drol.paper.scales import SHRUNK
from drol.runs.config import RunConfig
from drol.runs.run import Run
from drol.tasks import DEFAULT_TASK
from drol.tracking import PACKAGES, check_tracker
from drol.training.divergence import Diverged
from drol.training.train import prepare_run, train

EPILOG = """examples:
  drol train                                    the embedded maze with the paper's settings (long on a CPU)
  drol train --preset laptop                    the same maze in minutes
  drol train --preset laptop --seeds 0 1 2      three seeds at once
  drol train antmaze-large-navigate-singletask-v0                          with its row of the paper's table, K = 16
  drol train antmaze-giant-navigate-singletask-v0 --preset paper-tuned     with the K that the paper chose for it
  drol train --preset laptop --online-steps 5000                           then fine-tune in the environment
  drol train TASK --from runs/other                                        start from the networks of another run
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
    parser.add_argument("--algorithm", default="drol", metavar="NAME", help=f"one of {names} (default: drol)")
    parser.add_argument(
        "--preset",
        choices=(*PRESETS, ONLINE, *SHRUNK, LAPTOP),
        default="paper",
        help="settings to start from: those of the task as printed or as in the released commands, with K = 16 or the "
        "tuned K; online: FQL's commands that go on online; small: the paper's with small networks and few updates; "
        "smoke: to see that it runs; laptop: that of the demo (default: paper)",
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


def parse(arguments: list[str]) -> tuple[RunConfig, argparse.Namespace]:
    """Return the settings that a command line asks for; the algorithm is read first, because flags depend on it."""
    first = Parser("train", add_help=False)
    first.add_argument("--algorithm", default="drol")
    name = first.parse_known_args(arguments)[0].algorithm
    parsed = make_parser(name).parse(arguments)
    fields = (*dataclasses.fields(RunConfig), *dataclasses.fields(find_algorithm(name)))
    changes = {key: value for key, value in given(parsed, fields).items() if key not in ("algorithm", "task")}
    return settings(parsed.task, name, parsed.preset, **changes), parsed


def run(arguments: list[str]) -> int:
    config, parsed = parse(arguments)
    keep_compiled_programs()
    if parsed.track:
        check_tracker(parsed.track)
    folder = parsed.out or Path("runs") / config.folder_name()
    _, task, _ = prepare_run(config, folder, None, parsed.processes, parsed.devices)
    for note in notes_on(config, parsed.preset):
        print(f"drol: note: {note}", file=sys.stderr)  # only now, so that a mistake is answered with one line
    options = (parsed.processes, parsed.quiet, parsed.background_evaluation, parsed.devices, parsed.track)
    try:
        trained = train(config, folder, task, *options)
    except Diverged as error:
        return complain(f"{error}: {slower(arguments, config, folder)}", DIVERGED)
    except EnvironmentFailed as error:
        return complain(error, 1)
    return conclude(trained)


def slower(arguments: list[str], config: RunConfig, folder: Path) -> str:
    """Return the command that goes on from the last checkpoint of a run, in a new folder, at a third of its rate."""
    changes = {"--from": str(folder), "--out": f"{folder}-slower"}
    rate = config.algorithm.to_dict().get("learning_rate")
    changes |= {"--learning-rate": f"{rate / 3:.2g}"} if rate else {}
    kept, waiting = [], iter(arguments)
    for word in waiting:
        if word in changes:
            next(waiting, None)
        elif word.split("=")[0] not in changes:
            kept.append(word)
    return shlex.join(["drol", "train", *kept, *(word for pair in changes.items() for word in pair)])


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
    return DAMAGE_SET_ASIDE if trained.damage else 0
