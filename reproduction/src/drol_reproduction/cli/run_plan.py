"""`drol paper run`."""

import sys

from drol.cli.flags import Parser, add_executor_flags, executor_from
from drol.progress import Progress
from drol.results.collect import collect_results
from drol_reproduction.cli.flags import add_plan_flags, plan_from
from drol_reproduction.execute_plan import execute_all

EPILOG = """examples:
  drol paper run table1 fig4 --scale small      on a laptop overnight; the same command resumes
  drol paper run fig3 --scale smoke             a minute, to see that everything works
  drol paper run table1 --tasks 'cube-single-*' --methods drol fql --processes 1

On Ctrl-C the active runs save a checkpoint and stop. A failed run does not stop the others; the same command
retries it."""


def run(arguments: list[str]) -> int:
    parser = Parser("paper run", "Execute the missing runs of a table or figure.", EPILOG)
    add_plan_flags(parser)
    add_executor_flags(parser)
    parsed = parser.parse(arguments)
    executor, imports = executor_from(parsed)
    results = collect_results(parsed.results)
    with Progress("paper", "updates") as progress:
        plan, ended = execute_all(lambda: plan_from(parsed, results), executor, progress.show, imports)
    for each in ended:
        if each.code:
            print(f"drol: {each.name} failed, {each.reason}; all of it is in {each.log}", file=sys.stderr)
    left = len(plan.unfinished())
    print(f"{len(plan.runs) - left} of {len(plan.runs)} runs done, in {plan.root / plan.scale}")
    for note in plan.notes:
        print(f"note: {note}")
    return 1 if left or results.skipped else 0
