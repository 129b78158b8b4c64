"""`drol paper plan`."""

from itertools import groupby

from drol.cli.flags import Parser
from drol.planning.command import run_commands
from drol.progress import Progress
from drol.results.collect import collect_results
from drol_reproduction.cli.flags import add_plan_flags, plan_from
from drol_reproduction.cost import remaining_cost
from drol_reproduction.plan import Plan

EPILOG = """examples:
  drol paper plan table1                        all runs of the paper's tables
  drol paper plan table1 --scale small          what two cores carry
  drol paper plan fig4 --tasks 'cube-*' --commands

The scales are also presets: drol train TASK --preset small."""


def run(arguments: list[str]) -> int:
    parser = Parser("paper plan", "Print the runs of a table or figure, what is done, and what the rest costs.", EPILOG)
    add_plan_flags(parser)
    parser.add_argument("--commands", action="store_true", help="print the commands of the unfinished runs instead")
    parsed = parser.parse(arguments)
    results = collect_results(parsed.results)
    plan = plan_from(parsed, results)
    if parsed.commands:
        for each in plan.unfinished():
            print(*run_commands(each.config, plan.root / each.name, each.missing_best_of(plan.root)), sep="\n")
        return 1 if results.skipped else 0
    print_statuses(plan)
    for note in plan.notes:
        print(f"note: {note}")
    with Progress("cost", "runs") as progress:
        cost = remaining_cost(plan, progress.show)
    print(
        f"to do: {cost.updates:,} updates, about {cost.core_hours:,.1f} core-hours here, "
        f"about {cost.gpu_hours:,.1f} GPU-hours ({cost.how})"
    )
    return 1 if results.skipped else 0


def print_statuses(plan: Plan) -> None:
    """Print a line for each task and method: its seeds and their progress."""
    rows = [(each.task, each.label, each.seeds, status) for each, status in plan.statuses()]
    width = max(len(task) for task, *_ in rows)
    for (task, label), group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        group = list(group)
        done = sum(len(seeds) for *_, seeds, status in group if status.done)
        total = sum(len(seeds) for *_, seeds, _ in group)
        others = sorted({str(status) for *_, status in group if not status.done and str(status) != "missing"})
        print(f"{task:{width}s}  {label:10s}  {done} of {total} seeds done{''.join(f', {each}' for each in others)}")
    done = sum(status.done for *_, status in rows)
    print(f"{done} of {len(rows)} runs done, in {plan.root / plan.scale}")
