"""The process of a job: `python -m drol.queue.child PARENT ARGUMENTS...` does what `drol ARGUMENTS...` does.

Before that it asks the system to be told when the process of the queue ends, however that happens: it then saves and
stops as after any SIGTERM, so that a queue that was killed leaves nothing behind that still runs.
"""

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1  # of prctl(2), which only Linux has


def end_with(parent: int) -> None:
    """Let this process get SIGTERM when its parent ends; end now if it has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    sys.argv = ["drol", *sys.argv[2:]]
    runpy.run_module("drol.cli.main", run_name="__main__")
