"""How much of the paper is reproduced: each table and figure with its commands, its cost and its present state."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from drol.experiments.results.result import Result
from drol.paper.argument.tables import markdown
from drol.paper.planned import Evaluated, PlannedRun
from drol.paper.reproduce.cost import gpu_hours
from drol.paper.reproduce.experiments import COLUMNS, EXPERIMENTS, TUNED
from drol.paper.reproduce.plan import Plan, evaluated, make_plan
from drol.queue.jobs import Timing

COMMAND = "drol paper status"
WHAT = {
    "table1": ("Table 1, families", "drol paper table 1"),
    "full": ("Table of all tasks", "drol paper table full"),
    "fig2": ("Figure 2, Voronoi evolution", "drol paper figure 2"),
    "fig3": ("Figure 3, candidates against K; run times", "drol paper figure 3 --bench FILE"),
    "fig4": ("Figure 4, sensitivity to K", "drol paper figure 4"),
}


def status_tables(results: Iterable[Result], timings: Sequence[Timing]) -> dict[str, str]:
    """Return the tables of docs/reproduction.md, as Markdown.

    Args:
        results: What is done, such as `results/paper_small.csv`.
        timings: How long it took.

    Returns:
        "experiments": each table and figure with its commands, its cost and its state; "runs": what is done of each
        task and method at the scale "small".
    """
    finished = evaluated(row for row in results if row.evaluation == "training")
    rows = []
    for name in EXPERIMENTS:
        title, command = WHAT[name]
        paper, small = planned(name, "paper"), planned(name, "small")
        updates = [(run, len(run.seeds) * run.config.total_steps) for run in paper.runs]
        done = sum(is_trained(run, seed, finished) for run in small.runs for seed in run.seeds)
        total = sum(len(run.seeds) for run in small.runs)
        rows.append(
            (
                title,
                f"`drol paper run {name}`, `{command}`",
                f"{sum(count for _, count in updates) / 1e6:,.0f} M",
                f"{gpu_hours(updates):,.0f}",
                f"{done} of {total}",
            )
        )
    head = ("what", "commands", "updates", "GPU-hours (estimate)", "small scale: seeds done")
    timings = [timing for timing in timings if not timing.failed]
    hours = sum(timing.core_hours for timing in timings)
    note = f"\n\n{len(timings)} runs of the small scale were timed: {hours:.1f} core-hours, their evaluations included."
    return {"experiments": markdown(head, rows) + (note if timings else ""), "runs": runs_table(finished)}


def planned(name: str, scale: str) -> Plan:
    """Return the plan of a table or figure, DROL* left out: its runs follow from others."""
    columns = None if name.startswith("fig") else [each for each in COLUMNS if each != TUNED]
    return make_plan(name, scale, methods=columns, root=Path("nowhere"))


def runs_table(finished: Evaluated) -> str:
    """Return the seeds that are done of each task and method at the small scale, and of how many."""
    counts: dict[tuple[str, str], dict[int, bool]] = {}
    for name in ("table1", "fig4"):
        for run in planned(name, "small").runs:
            own = counts.setdefault((run.task, run.label), {})
            own |= {seed: is_trained(run, seed, finished) for seed in run.seeds}
    rows: dict[str, list[str]] = {}
    for (task, label), own in counts.items():
        rows.setdefault(task, []).append(f"{label} {sum(own.values())}/{len(own)}")
    return markdown(("task", "seeds done"), [(task, ", ".join(words)) for task, words in rows.items()])


def is_trained(run: PlannedRun, seed: int, finished: Evaluated) -> bool:
    """Return whether one seed of a planned run was trained with just these settings for as long as planned."""
    return dataclasses.replace(run, seeds=(seed,), best_of=()).evaluations() <= finished
