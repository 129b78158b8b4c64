"""Execute the missing runs of a plan; the same call resumes."""

from collections.abc import Callable, Iterable

from drol.jobs.job import Executor, Finished
from drol.jobs.local import LocalExecutor
from drol.planning.execute_runs import execute_runs
from drol.progress import Report
from drol_reproduction.plan import Plan


def execute(
    plan: Plan, executor: Executor | None = None, report: Report | None = None, imports: Iterable[str] = ()
) -> list[Finished]:
    """Execute the missing runs of a plan.

    Args:
        plan: The return value of `make_plan`.
        executor: The executor of the jobs; if None, local processes, one per core.
        report: Called as `report(done, total, what)`, in updates, during and after each run.
        imports: Modules that the process of each run imports first.

    Returns:
        The outcome of each job. A failed job does not stop the others; its log has the error.
    """
    return execute_runs(plan.statuses(), plan.root, executor or LocalExecutor(), report, imports)


def execute_all(
    make: Callable[[], Plan],
    executor: Executor | None = None,
    report: Report | None = None,
    imports: Iterable[str] = (),
) -> tuple[Plan, list[Finished]]:
    """Execute a plan, then the runs that its results add: those of DROL* once K has been chosen.

    Args:
        make: A function that makes the plan, such as `lambda: make_plan("table1", "small")`.
        executor: As in `execute`.
        report: As in `execute`.
        imports: As in `execute`.

    Returns:
        The last plan and the outcome of each job. After a failed job, the other jobs of its plan run, and no further
        plan is made.
    """
    plan, ended = make(), []
    while True:
        ended += execute(plan, executor, report, imports)
        before, plan = plan, make()
        if any(each.code for each in ended) or not plan.unfinished() or plan.runs == before.runs:
            return plan, ended
