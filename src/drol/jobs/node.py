"""Execute a job on a node of a cluster, on claimed cores.

The folders of the runs are on storage that all nodes share. A job that moved to another node because its node was lost
waits until the run's folder is unlocked. Then the run resumes from its last checkpoint.
"""

import signal
import time
from collections.abc import Callable

from drol.errors import InputError
from drol.jobs.cores import claimed_cores
from drol.jobs.job import Job
from drol.jobs.local import POLL_SECONDS, LocalWork
from drol.storage import is_held

WAIT_SECONDS = 1.0  # between two checks of a lock that another process holds


def do_job(job: Job, cores: int, stopping: Callable[[], bool]) -> int:
    """Execute a job on this machine and return its exit code.

    Args:
        job: The job.
        cores: Cores of the job. The number does not depend on the machine, because the last bits of a run may depend
            on it.
        stopping: Called regularly. If it returns True, the process saves and ends, and the exit code is the code of
            the signal.
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
