"""A job on a node of a cluster: its commands one after another, on cores of its own, until they end or must stop.

The folders of the runs are on storage that all nodes share. A job that was moved because its node was lost waits until
nobody holds its folder any more, and goes on from what was saved there.
"""

import signal
import time
from collections.abc import Callable

from drol.errors import InputError
from drol.queue.cores import claimed_cores
from drol.queue.jobs import Job
from drol.queue.local import POLL_SECONDS, LocalWork
from drol.storage import is_held

WAIT_SECONDS = 1.0  # between two looks at a folder that another process holds


def do_job(job: Job, cores: int, stopping: Callable[[], bool]) -> int:
    """Do a job on this machine and return its exit code.

    Args:
        job: The job.
        cores: How many cores it gets, whatever the machine has: the last bits of a run may depend on it.
        stopping: Asked now and then; True: let the present command save, and return then. What is returned says
            nothing of the job as a whole in this case.
    """
    if not job.log.parent.is_dir():
        raise InputError(f"this node has no folder {job.log.parent}; the runs must be on storage that all nodes share")
    while job.lock is not None and is_held(job.lock) and not stopping():
        time.sleep(WAIT_SECONDS)
    if stopping():
        return 128 + signal.SIGTERM
    with claimed_cores(cores) as pinned:
        work = LocalWork(job, pinned)
        while (code := work.poll()) is None:
            time.sleep(POLL_SECONDS)
            if stopping():
                work.stop()
                work.wait()
                return work.process.returncode
    return code
