"""`drol data train-expert`."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.progress import Progress
from drol_reproduction.experts.train_expert import EXPERTS, STEPS, train_expert

EPILOG = """The ant is trained with OGBench's recipe: SAC in online-ant-xy-v0, 400,000 steps.
A step with its update takes 16.5 ms of CPU time on one busy core, 1.8 hours for the training. Checkpoints are in
FOLDER.training; after an interruption the same command resumes and gives the same weights.

examples:
  drol data train-expert ant --out ant-expert
  drol data collect antmaze-large-navigate-v0 --expert ant-expert"""


def run(arguments: list[str]) -> int:
    parser = Parser("data train-expert", "Train an expert policy for `drol data collect --expert`.", EPILOG)
    parser.add_argument("expert", choices=EXPERTS, help="the expert to train")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the policy folder to write")
    parser.add_argument(
        "--steps", type=whole_number, default=STEPS, metavar="N", help=f"steps of the environment (default: {STEPS:,})"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="the same seed gives the same weights (default: 0)"
    )
    parsed = parser.parse(arguments)
    with Progress("training", "steps") as progress:
        trained = train_expert(parsed.out, parsed.expert, steps=parsed.steps, seed=parsed.seed, report=progress.show)
    if trained.stopped_by is not None:
        print(f"stopped; the same command resumes at step {trained.step:,} of {trained.steps:,}")
        return 128 + trained.stopped_by
    distance, fallen = f"{trained.mean_distance:.1f} m per episode", f"{trained.fallen:.0%} of the episodes"
    print(f"wrote {trained.folder}: the ant walks {distance} in the right direction and falls in {fallen}")
    return 0
