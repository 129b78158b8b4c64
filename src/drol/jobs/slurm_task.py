"""A task of a SLURM array: `python -m drol.jobs.slurm_task FOLDER CORES JOB` executes the job, writes its exit code.

After SIGTERM (scancel, preemption) and SIGUSR1 (the time limit is near) the run saves and stops. No exit code is
written then, because the job has not ended. SLURM requeues preempted tasks; at the time limit the task requeues itself.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from drol.errors import InputError
from drol.jobs.node import do_job
from drol.jobs.slurm import code_file, decoded, seconds_file
from drol.storage import append_whole, write_whole


def main(folder: Path, cores: int, text: str) -> int:
    """Execute a job and return the exit code of the task."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, note)
    job, began, task = decoded(text), time.monotonic(), int(os.environ["SLURM_ARRAY_TASK_ID"])
    print(f"{job.name} on {os.uname().nodename}; what it prints is in {job.log}", flush=True)
    try:
        code = do_job(job, cores, lambda: bool(noted))
    except InputError as error:
        print(f"drol: error: {error}", flush=True)
        code = 2
    append_whole(seconds_file(folder, task), f"{time.monotonic() - began:.1f}\n")
    if noted:
        if signal.SIGTERM not in noted:
            subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)
        return 128 + noted[0]
    write_whole(code_file(folder, task), str(code))
    return code if 0 <= code < 256 else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
