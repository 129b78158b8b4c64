"""Queues of runs: jobs, the schedule that hands them out, and the executors that do them."""

from drol.errors import unknown_name
from drol.queue.jobs import Executor
from drol.queue.local import LocalExecutor

EXECUTORS = ("local",)
RETRIES = 1  # how often a job that failed is tried again


def make_executor(name: str = "local", processes: int | None = None, retries: int = RETRIES) -> Executor:
    """Return an executor by its name.

    Args:
        name: "local" for processes of this machine.
        processes: Jobs at once; one for each core if None.
        retries: How often a job that failed is tried again.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return LocalExecutor(processes, retries)
