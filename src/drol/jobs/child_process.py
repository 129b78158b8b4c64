"""The process of a job: `python -m drol.jobs.child_process PARENT ARGUMENTS...` executes `drol ARGUMENTS...`.

It first asks the system for a SIGTERM when the parent process ends for any reason. On SIGTERM a run saves and stops,
so no job keeps running after its executor was killed.
"""

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1  # option of prctl(2), on Linux only


def end_with(parent: int) -> None:
    """Request SIGTERM for this process when its parent ends; exit now if the parent has already ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    sys.argv = ["drol", *sys.argv[2:]]
    runpy.run_module("drol.cli.main", run_name="__main__")
