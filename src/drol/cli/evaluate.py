"""`drol evaluate`."""

import argparse
from pathlib import Path

from drol.cli.flags import Parser, number, whole_number
from drol.cli.jax_cache import prepare_jax
from drol.errors import InputError
from drol.evaluation.episodes import evaluate_run
from drol.evaluation.offline import UPDATES, evaluate_run_offline
from drol.runs.directory import RunDirectory

EPILOG = """examples:
  drol evaluate runs/demo                      the last policy, one pass for each action
  drol evaluate runs/demo --best-of 16         the critic chooses among 16 actions
  drol evaluate runs/demo --step 15000 --episodes 200
  drol evaluate runs/demo --offline            what the data alone says of the last policy
  drol evaluate runs/demo --offline --every-step      of every saved policy, to choose one

docs/offline-evaluation.md explains the figures of --offline and what they were found to be worth."""

EPISODES = 50
IN_THE_ENVIRONMENT = ("episodes", "first_seed", "processes")
OFFLINE = ("every_step", "updates", "discount")

# Column of the table, entry of the row, how it is printed.
COLUMNS = (
    ("step", "step", ","),
    ("seed", "seed", "d"),
    ("error of 1", "single_sample_error", ".3f"),
    ("of 16", "routed_bc_loss", ".3f"),
    ("distance/data", "support_ratio", ".2f"),
    ("outside", "outside_support", ".1%"),
    ("value", "value", ".2f"),
    ("from", "value_low", ".2f"),
    ("to", "value_high", ".2f"),
    ("rank", "value_rank", ".2f"),
    ("own value", "own_value", ".2f"),
    ("own rank", "own_rank", ".2f"),
)


def make_parser() -> Parser:
    parser = Parser("evaluate", "Run episodes with the policy of a run and print its score.", EPILOG)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument(
        "--best-of",
        type=whole_number,
        default=1,
        metavar="N",
        help="actions drawn for each step; the critic chooses (default: 1)",
    )
    parser.add_argument("--step", type=whole_number, metavar="N", help="the policy of this update (default: the last)")
    played = parser.add_argument_group("in the environment")
    played.add_argument(
        "--episodes", type=whole_number, metavar="N", help=f"episodes of each seed (default: {EPISODES})"
    )
    played.add_argument("--first-seed", type=whole_number, metavar="N", help="seed of the first episode (default: 0)")
    played.add_argument("--processes", type=whole_number, metavar="N", help="environments at once")
    offline = parser.add_argument_group("without an environment")
    offline.add_argument("--offline", action="store_true", help="judge by the data alone; nothing is simulated")
    offline.add_argument("--every-step", action="store_true", default=None, help="every saved policy of the run")
    offline.add_argument(
        "--updates", type=whole_number, metavar="N", help=f"updates of fitted-Q evaluation (default: {UPDATES})"
    )
    offline.add_argument("--discount", type=number, metavar="X", help="discount of values (default: that of the run)")
    return parser


def run(arguments: list[str]) -> int:
    parsed = make_parser().parse(arguments)
    refuse(parsed, IN_THE_ENVIRONMENT if parsed.offline else OFFLINE)
    prepare_jax()
    return judge_by_data(parsed) if parsed.offline else play(parsed)


def refuse(parsed: argparse.Namespace, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(parsed, name) is not None:
            way = "cannot be used with" if parsed.offline else "needs"
            raise InputError(f"--{name.replace('_', '-')} {way} --offline; `drol evaluate --help` explains")
    if parsed.step is not None and parsed.every_step:
        raise InputError(f"--step {parsed.step} and --every-step exclude each other; give one of them")


def play(parsed: argparse.Namespace) -> int:
    rows = evaluate_run(
        RunDirectory(parsed.run),
        EPISODES if parsed.episodes is None else parsed.episodes,
        parsed.best_of,
        parsed.step,
        parsed.first_seed or 0,
        parsed.processes,
    )
    for row in rows:
        failed = sum("failure" in episode for episode in row["episodes"])
        broken = f", {failed} episodes failed in the environment" if failed else ""
        which = f"seed {row['seed']}, step {row['step']:,}, best of {row['best_of']}"
        print(f"{which}: {row['score']:.1f} over {len(row['episodes'])} episodes{broken}")
    return 0


def judge_by_data(parsed: argparse.Namespace) -> int:
    """Print a line of the table for each policy as soon as it is known."""
    directory = RunDirectory(parsed.run)
    updates = UPDATES if parsed.updates is None else parsed.updates
    rows = evaluate_run_offline(
        directory, parsed.step, bool(parsed.every_step), parsed.best_of, updates, parsed.discount
    )
    widths = [max(len(title), 8) for title, _, _ in COLUMNS]
    for count, row in enumerate(rows):
        if count == 0:
            seen = "held-out data" if row["unseen"] else "data that the policy was trained on (there is no other)"
            print(f"on {seen}; discount {row['discount']:g}")
            print("  ".join(title.rjust(width) for (title, _, _), width in zip(COLUMNS, widths, strict=True)))
        cells = (format(row[name], form) if row.get(name) is not None else "-" for _, name, form in COLUMNS)
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)
    print(f"written to {directory.offline}")
    return 0
