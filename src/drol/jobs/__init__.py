"""Execute runs as jobs: on this machine, on a Ray cluster or on a SLURM cluster."""

from drol.errors import InputError, unknown_name
from drol.jobs.job import Executor
from drol.jobs.local import LocalExecutor

EXECUTORS = ("local", "ray", "slurm")
RETRIES = 1  # of a failed job
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
        processes: Concurrent jobs. If None, one per core of this machine, or as many as the cluster has room for.
        retries: How often a failed job is retried.
        cores: Cores of each job on a cluster; 1 if None.
        gpus: GPUs of each job on a Ray cluster, such as 0.25; none if None.
        address: The Ray cluster. If None, `RAY_ADDRESS` is used, or else a local cluster is started.
        sbatch: Further arguments of `sbatch`, as one string.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    options = {"cores": cores, "gpus": gpus, "address": address, "sbatch": sbatch}
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if name not in OPTIONS[option]:
            raise InputError(f"{option} is for the executor {' or '.join(OPTIONS[option])}; the executor is {name}")
    if name == "ray":
        from drol.jobs.ray_cluster import RayExecutor

        return RayExecutor(processes, retries, **given)
    if name == "slurm":
        from drol.jobs.slurm import SlurmExecutor

        return SlurmExecutor(processes, retries, **given)
    return LocalExecutor(processes, retries)
