"""`drol evaluate`."""

import argparse
import dataclasses
from pathlib import Path

from drol.algorithms import known_algorithms
from drol.cli.flags import Parser, add_fields, given, number, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.main import complain
from drol.errors import CORRUPTED_FILES, InputError, counted
from drol.evaluation.episodes import EnvironmentFailed
from drol.evaluation.evaluate_run import evaluate, evaluate_offline
from drol.evaluation.offline import DISCOUNT, UPDATES
from drol.progress import Progress
from drol.runs.records import OfflineRow
from drol.runs.run import Run, open_run

EPILOG = """examples:
  drol evaluate runs/demo                      the last policy, one action per step
  drol evaluate runs/demo --best-of 16         the critic chooses among 16 actions
  drol evaluate runs/sorl --act-steps 2        SORL with two flow steps per action
  drol evaluate runs/demo --step 10000 --episodes 200
  drol evaluate runs/demo --video 3            also save videos of the first three episodes
  drol evaluate runs/demo --offline            estimate the last policy from the data alone
  drol evaluate runs/demo --offline --every-step      the same for every saved policy

A repeated evaluation (same step, seed and acting options) replaces the earlier one in the run's folder, unless the
earlier one has more episodes; --replace replaces that, too.
docs/offline-evaluation.md explains the metrics of --offline and reports how well they predict scores."""

EPISODES = 50
IN_THE_ENVIRONMENT = ("episodes", "first_seed", "processes", "videos", "replace")
OFFLINE = ("every_step", "updates", "discount")

# Column of the table, name of the metric, format.
COLUMNS = (
    ("error of 1", "single_sample_error", ".3f"),
    ("of 16", "routed_bc_loss", ".3f"),
    ("distance/data", "support_ratio", ".2f"),
    ("outside", "outside_support", ".1%"),
    ("draw/data", "draw_ratio", ".2f"),
    ("value", "value", ".2f"),
    ("from", "value_low", ".2f"),
    ("to", "value_high", ".2f"),
    ("rank", "value_rank", ".2f"),
    ("own value", "own_value", ".2f"),
    ("own rank", "own_rank", ".2f"),
)
TITLES = ("step", "seed", *(title for title, _, _ in COLUMNS))
WIDTHS = [max(len(title), 8) for title in TITLES]


def make_parser() -> Parser:
    parser = Parser("evaluate", "Evaluate the policy of a run and print its score.", EPILOG)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument(
        "--best-of",
        type=whole_number,
        metavar="N",
        help="actions drawn for each step, from which the critic chooses (default: the method's, usually 1)",
    )
    parser.add_argument(
        "--step", type=whole_number, metavar="N", help="the policy saved after this update (default: the last)"
    )
    played = parser.add_argument_group("in the environment")
    played.add_argument("--episodes", type=whole_number, metavar="N", help=f"episodes per seed (default: {EPISODES})")
    played.add_argument("--first-seed", type=whole_number, metavar="N", help="seed of the first episode (default: 0)")
    played.add_argument("--processes", type=whole_number, metavar="N", help="parallel environments")
    played.add_argument(
        "--video", dest="videos", type=whole_number, metavar="N", help="record the first N episodes of each seed"
    )
    played.add_argument(
        "--replace",
        action="store_true",
        default=None,
        help="replace an earlier evaluation even if it has more episodes",
    )
    add_fields(played, acting_fields())
    offline = parser.add_argument_group("without an environment")
    offline.add_argument("--offline", action="store_true", help="evaluate on the data alone, without a simulation")
    offline.add_argument(
        "--every-step", action="store_true", default=None, help="evaluate every saved policy of the run"
    )
    offline.add_argument(
        "--updates", type=whole_number, metavar="N", help=f"updates of fitted-Q evaluation (default: {UPDATES})"
    )
    offline.add_argument("--discount", type=number, metavar="X", help=f"discount of values (default: {DISCOUNT:g})")
    return parser


def acting_fields() -> list[dataclasses.Field]:
    """Return the hyperparameters that an evaluation may change, of all algorithms."""
    kinds = known_algorithms().values()
    fields = {field.name: field for kind in kinds for field in dataclasses.fields(kind) if field.name in kind.acting}
    return list(fields.values())


def run(arguments: list[str]) -> int:
    parsed = make_parser().parse(arguments)
    played = (*IN_THE_ENVIRONMENT, *(field.name for field in acting_fields()))
    for name in played if parsed.offline else OFFLINE:
        if getattr(parsed, name, None) is not None:
            way = "cannot be used with" if parsed.offline else "needs"
            flag = name.removesuffix("s") if name == "videos" else name.replace("_", "-")
            raise InputError(f"--{flag} {way} --offline; see `drol evaluate --help`")
    opened = open_run(parsed.run)
    keep_compiled_programs()
    try:
        judge_by_data(parsed, opened) if parsed.offline else play(parsed, opened)
    except EnvironmentFailed as error:
        return complain(error, 1)
    return CORRUPTED_FILES if opened.damaged else 0


def play(parsed: argparse.Namespace, opened: Run) -> None:
    options = {name: getattr(parsed, name) for name in ("best_of", "step", *IN_THE_ENVIRONMENT)}
    options = {name: value for name, value in options.items() if value is not None}
    with Progress("evaluating", "episodes") as progress:
        rows = evaluate(opened, **options, **given(parsed, acting_fields()), report=progress.show)
    for row in rows:
        broken = f", {counted(len(row.failures), 'episode')} failed in the environment" if row.failures else ""
        acting = "".join(f", {name} {value}" for name, value in row.acting.items())
        which = f"seed {row.seed}, step {row.step:,}, best of {row.best_of}{acting}"
        print(f"{which}: {opened.task.score_name} {row.score:.1f} over {counted(len(row.episodes), 'episode')}{broken}")
    if parsed.videos:
        print(f"videos: {opened.directory.videos}")


def judge_by_data(parsed: argparse.Namespace, opened: Run) -> None:
    """Evaluate on the data and print a line for each policy as soon as it is ready."""
    printed: list[OfflineRow] = []

    def show(row: OfflineRow) -> None:
        if not printed:
            seen = "held-out data" if row.unseen else "the training data (no data is held out)"
            print(f"on {seen}; discount {row.discount:g}")
            print("  ".join(title.rjust(width) for title, width in zip(TITLES, WIDTHS, strict=True)))
        printed.append(row)
        figures = ((row.figures.get(name), form) for _, name, form in COLUMNS)
        cells = [
            f"{row.step:,}",
            str(row.seed),
            *("-" if value is None else format(value, form) for value, form in figures),
        ]
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True)), flush=True)

    updates = UPDATES if parsed.updates is None else parsed.updates
    discount = DISCOUNT if parsed.discount is None else parsed.discount
    options = (parsed.step, bool(parsed.every_step), parsed.best_of, updates, discount)
    with Progress("evaluating on data", "policies") as progress:
        evaluate_offline(opened, *options, on_row=show, report=progress.show)
    print(f"wrote {opened.directory.offline_file}")
