"""Queues of runs: jobs, the schedule that hands them out, and the executors that do them."""

from drol.errors import InputError, unknown_name
from drol.queue.jobs import Executor
from drol.queue.local import LocalExecutor

EXECUTORS = ("local", "ray", "slurm")
RETRIES = 1  # how often a job that failed is tried again
OPTIONS = {"cores": ("ray", "slurm"), "gpus": ("ray",), "address": ("ray",), "sbatch": ("slurm",)}


def make_executor(
    name: str = "local",
    processes: int | None = None,
    retries: int = RETRIES,
    cores: int | None = None,
    gpus: float | None = None,
    address: str | None = None,
    sbatch: str | None = None,
) -> Executor:
    """Return an executor by its name.

    Args:
        name: "local" for processes of this machine, "ray" for a Ray cluster, "slurm" for a SLURM cluster.
        processes: Jobs at once; one for each core of this machine, or as many as a cluster takes, if None.
        retries: How often a job that failed is tried again.
        cores: Cores of each job on a cluster; 1 if None.
        gpus: GPUs of each job on a Ray cluster, such as 0.25; none if None.
        address: The Ray cluster; that of `RAY_ADDRESS`, or else one that is started here, if None.
        sbatch: More arguments of `sbatch`, as one text.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    options = {"cores": cores, "gpus": gpus, "address": address, "sbatch": sbatch}
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if name not in OPTIONS[option]:
            raise InputError(f"{option} is for the executor {' or '.join(OPTIONS[option])}; the executor is {name}")
    if name == "ray":
        from drol.queue.ray_cluster import RayExecutor

        return RayExecutor(processes, retries, **given)
    if name == "slurm":
        from drol.queue.slurm import SlurmExecutor

        return SlurmExecutor(processes, retries, **given)
    return LocalExecutor(processes, retries)
