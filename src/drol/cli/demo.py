"""`drol demo`: the whole path in a few minutes."""

from pathlib import Path

from drol.cli import train as train_command
from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import prepare_jax
from drol.cli.report import make_report
from drol.evaluation.episodes import evaluate_run
from drol.runs.directory import RunDirectory
from drol.training.trainer import train

BEST_OF = 16


def run(arguments: list[str]) -> int:
    parser = Parser("demo", "Train DROL in a maze with small networks, evaluate it and write a report to look at.")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="seed of the run (default: 0)")
    parser.add_argument("--steps", type=whole_number, metavar="N", help="updates (default: those of the laptop preset)")
    parser.add_argument("--out", type=Path, help="run folder (default: runs/demo, with the seed if it is not 0)")
    parsed = parser.parse(arguments)
    folder = parsed.out or Path("runs") / ("demo" if parsed.seed == 0 else f"demo-seed{parsed.seed}")
    flags = ["--preset", "laptop", "--seeds", str(parsed.seed)]
    config, _ = train_command.parse(flags + (["--steps", str(parsed.steps)] if parsed.steps is not None else []))
    print(f"DROL learns to cross a maze ({config.task}) from {folder}; two to three minutes on two cores.", flush=True)
    prepare_jax()
    outcome = train(config, folder)
    if outcome.step < config.steps:
        return train_command.conclude(outcome, config)
    best = evaluate_run(RunDirectory(folder), config.evaluation_episodes, BEST_OF)
    assert outcome.scores is not None
    report = make_report(RunDirectory(folder))
    print(f"success in one pass:  {outcome.scores[0]:.0f}% of {config.evaluation_episodes} episodes")
    print(f"success, best of {BEST_OF}:  {best[0]['score']:.0f}% (the critic chooses among {BEST_OF} actions)")
    print(f"look at it:           {report.resolve()}")
    return 0
