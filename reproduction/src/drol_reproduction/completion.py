"""List the state of the reproduction: each table and figure with its commands, its cost and the finished seeds."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from drol.jobs.job import Timing
from drol.planning.planned_run import PlannedRun
from drol.results.result import Result
from drol_reproduction.cost import gpu_hours
from drol_reproduction.experiments import BLOCKS, COLUMNS, EXPERIMENTS, TUNED
from drol_reproduction.plan import Evaluated, Plan, evaluated, final_evaluations, make_plan
from drol_reproduction.propositions.proposition_tables import markdown

COMMAND = "drol paper status"
WHAT = {
    "table1": ("Table 1, families", "drol paper table 1"),
    "full": ("Table of all tasks", "drol paper table full"),
    "fig2": ("Figure 2, Voronoi evolution", "drol paper figure 2"),
    "fig3": ("Figure 3, candidates against K; run times", "drol paper figure 3 --bench FILE"),
    "fig4": ("Figure 4, sensitivity to K", "drol paper figure 4"),
    "controls": ("Controls of dynamic routing (ours)", "drol paper hypotheses"),
}
SCALES = ("short", "medium", "small")  # the scales that are trained on two cores


def status_tables(results: Iterable[Result], timings: Sequence[Timing]) -> dict[str, str]:
    """Return the tables of docs/reproduction.md, as Markdown.

    Args:
        results: The finished runs, for example from `results/paper_short.csv`.
        timings: Their training times.

    Returns:
        "experiments": each table and figure with its commands, its cost and the number of finished seeds; "runs": the
        finished seeds of each scale, task and method.
    """
    finished = evaluated(row for row in results if row.evaluation == "training")
    rows = []
    for name in EXPERIMENTS:
        title, command = WHAT[name]
        paper = planned(name, "paper").runs if name in BLOCKS["paper"] else ()
        updates = [(run, len(run.seeds) * run.config.total_steps) for run in paper]
        rows.append(
            (
                title,
                f"`drol paper run {name}`, `{command}`",
                f"{sum(count for _, count in updates) / 1e6:,.0f} M" if paper else "",
                f"{gpu_hours(updates):,.0f}" if paper else "",
                *(seeds_done(name, scale, finished) for scale in SCALES),
            )
        )
    head = ("what", "commands", "updates", "GPU-hours (estimate)", *(f"{scale}: seeds done" for scale in SCALES))
    timings = [timing for timing in timings if not timing.failed]
    hours = sum(timing.core_hours for timing in timings)
    note = f"\n\n{len(timings)} runs were timed: {hours:.1f} core-hours, their evaluations included."
    return {"experiments": markdown(head, rows) + (note if timings else ""), "runs": runs_table(finished)}


def seeds_done(name: str, scale: str, finished: Evaluated) -> str:
    """Return the seeds of a table or figure at a scale as "DONE of TOTAL"; empty if it has no runs at the scale."""
    if name not in BLOCKS[scale]:
        return ""
    seeds = [(run, seed) for run in planned(name, scale).runs for seed in run.seeds]
    return f"{sum(is_trained(run, seed, finished) for run, seed in seeds)} of {len(seeds)}"


def planned(name: str, scale: str) -> Plan:
    """Return the plan of a table or figure without DROL*, whose runs depend on the results of others."""
    columns = [each for each in COLUMNS if each != TUNED] if name in ("table1", "full") else None
    return make_plan(name, scale, methods=columns, root=Path("nowhere"))


def runs_table(finished: Evaluated) -> str:
    """Return the number of finished and planned seeds of each scale, task and method."""
    counts: dict[tuple[str, str, str], dict[int, bool]] = {}
    for scale in SCALES:
        for name in [each for each in EXPERIMENTS if each in BLOCKS[scale]]:
            for run in planned(name, scale).runs:
                own = counts.setdefault((scale, run.task, run.label), {})
                own |= {seed: is_trained(run, seed, finished) for seed in run.seeds}
    rows: dict[tuple[str, str], list[str]] = {}
    for (scale, task, label), own in counts.items():
        rows.setdefault((scale, task), []).append(f"{label} {sum(own.values())}/{len(own)}")
    return markdown(("scale", "task", "seeds done"), [(*where, ", ".join(words)) for where, words in rows.items()])


def is_trained(run: PlannedRun, seed: int, finished: Evaluated) -> bool:
    """Return whether one seed of a planned run was trained with the planned settings and number of updates."""
    return final_evaluations(dataclasses.replace(run, seeds=(seed,), best_of=())) <= finished
