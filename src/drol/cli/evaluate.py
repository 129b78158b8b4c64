"""`drol evaluate`."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.cli.runtime import prepare_jax
from drol.runs.directory import RunDirectory
from drol.training.evaluation import evaluate_run

EPILOG = """examples:
  drol evaluate runs/demo                      the last policy, one pass for each action
  drol evaluate runs/demo --best-of 16         the critic chooses among 16 actions
  drol evaluate runs/demo --step 15000 --episodes 200"""


def run(arguments: list[str]) -> int:
    parser = Parser("evaluate", "Run episodes with the policy of a run and print its score.", EPILOG)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument(
        "--best-of",
        type=whole_number,
        default=1,
        metavar="N",
        help="actions drawn for each step; the critic chooses (default: 1)",
    )
    parser.add_argument(
        "--episodes", type=whole_number, default=50, metavar="N", help="episodes of each seed (default: 50)"
    )
    parser.add_argument("--step", type=whole_number, metavar="N", help="the policy of this update (default: the last)")
    parser.add_argument(
        "--first-seed", type=whole_number, default=0, metavar="N", help="seed of the first episode (default: 0)"
    )
    parser.add_argument("--processes", type=whole_number, metavar="N", help="environments at once")
    parsed = parser.parse(arguments)
    prepare_jax()
    rows = evaluate_run(
        RunDirectory(parsed.run), parsed.episodes, parsed.best_of, parsed.step, parsed.first_seed, parsed.processes
    )
    for row in rows:
        failed = sum("failure" in episode for episode in row["episodes"])
        broken = f", {failed} episodes failed in the environment" if failed else ""
        which = f"seed {row['seed']}, step {row['step']:,}, best of {row['best_of']}"
        print(f"{which}: {row['score']:.1f} over {len(row['episodes'])} episodes{broken}")
    return 0
