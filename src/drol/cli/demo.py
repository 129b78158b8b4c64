"""`drol demo`: train, evaluate and report in a few minutes."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.train import conclude
from drol.evaluation.evaluate_run import evaluate
from drol.presets.settings import settings
from drol.reports.report import report
from drol.runs.run import Run
from drol.training.train import train

BEST_OF = 16
CLONING_STEPS = 3_000  # after this many updates, the loss of cloning alone no longer falls
LOSS = "diagnostics/routed_bc_loss"


def run(arguments: list[str]) -> int:
    parser = Parser("demo", "Train DROL in a maze with small networks, evaluate it and write a report.")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="seed of the run (default: 0)")
    parser.add_argument("--steps", type=whole_number, metavar="N", help="updates (default: those of the laptop preset)")
    parser.add_argument("--episodes", type=whole_number, metavar="N", help="episodes per evaluation (default: 50)")
    parser.add_argument("--out", type=Path, help="run folder (default: runs/demo, with the seed if it is not 0)")
    parsed = parser.parse(arguments)
    folder = parsed.out or Path("runs") / ("demo" if parsed.seed == 0 else f"demo-seed{parsed.seed}")
    changes = {"steps": parsed.steps, "evaluation_episodes": parsed.episodes}
    changes = {name: value for name, value in changes.items() if value is not None}
    config = settings(preset="laptop", seeds=(parsed.seed,), **changes)
    print(f"training DROL to cross a maze ({config.task}) in {folder}: about four minutes on two cores", flush=True)
    keep_compiled_programs()
    cloning_steps = min(CLONING_STEPS, config.steps)
    cloning = settings(
        preset="laptop", seeds=config.seeds, q_weight=0.0, steps=cloning_steps,
        log_interval=min(500, cloning_steps), evaluation_interval=cloning_steps, evaluation_episodes=1,
    )  # fmt: skip
    print("first, a short training with behaviour cloning alone, for comparison", flush=True)
    cloned = train(cloning, folder.with_name(f"{folder.name}-cloning"))
    if cloned.stopped_by is not None:
        return conclude(cloned)
    trained = train(config, folder)
    if trained.stopped_by is not None:
        return conclude(trained)
    best = evaluate(trained, config.evaluation_episodes, BEST_OF)
    page = report(trained, beside=cloned)
    assert trained.scores is not None
    print(f"success in one pass:  {trained.scores[0]:.0f}% of {config.evaluation_episodes} episodes")
    print(f"success, best of {BEST_OF}:  {best[0].score:.0f}% (the critic chooses among {BEST_OF} actions)")
    print(f"routed BC loss:       {last_loss(trained):.3f} (with cloning alone: {last_loss(cloned):.3f})")
    print(f"report:               {page.resolve()}")
    return 0


def last_loss(run: Run) -> float:
    """Return the mean distance from the data action to its nearest candidate over the last rows of metrics."""
    rows = run.metrics[-3:]
    return sum(row.values[LOSS] for row in rows) / len(rows)
