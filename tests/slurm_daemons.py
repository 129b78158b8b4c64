"""A real SLURM of one node on this machine, for tests: `slurmctld` and `slurmd` with a separate configuration."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

CONFIGURATION = """
ClusterName=drol
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES PriorityTier=1 State=UP
PartitionName=high Nodes={host} PriorityTier=10 State=UP
"""


def missing_slurm() -> str | None:
    """Return why SLURM cannot be run here; None if it can."""
    for name in ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol"):
        if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            return f"{name} is not installed (Debian: slurm-wlm)"
    if os.getuid():
        return "slurmd must be started by root"
    return None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def slurm_daemons(folder: Path):
    """Run SLURM; commands find it by the variable SLURM_CONF, which this yields."""
    (folder / "state").mkdir(parents=True)
    (folder / "spool").mkdir()
    host = socket.gethostname().split(".")[0]
    values = {"host": host, "folder": folder, "user": getpass.getuser()}
    path = folder / "slurm.conf"
    path.write_text(CONFIGURATION.format(controller=free_port(), node=free_port(), **values))
    environment = os.environ | {"SLURM_CONF": str(path), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    daemons = [
        subprocess.Popen([name, "-D"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in ("slurmctld", "slurmd")
    ]
    try:
        for _ in range(300):
            answer = subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True)
            if answer.stdout.split() and set(answer.stdout.split()) == {"idle"}:
                break
            time.sleep(0.2)
        else:
            raise RuntimeError((folder / "slurmctld.log").read_text()[-2000:])
        yield str(path)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait()
