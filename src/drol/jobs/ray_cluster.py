"""Execute jobs on a Ray cluster; each job is an actor that starts the process of the job on a node.

Ray stores no state of a run: all state is in the folders of the runs, on storage that all nodes share. If the process
or the node of an actor is lost, Ray restarts the actor on another node, and the run resumes there from its last
checkpoint. Actors end with the driver; the system then sends SIGTERM to the process of the job, which saves and stops.
"""

import contextlib
import os
import signal
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drol
from drol.bounds import check_at_least
from drol.errors import InputError
from drol.jobs.job import Finished, Job, KeepGoing
from drol.jobs.node import do_job
from drol.jobs.schedule import run_jobs
from drol.machine import available_cores
from drol.stop_signals import stop_requests
from drol.storage import write_whole

POLL_SECONDS = 1.0
CONNECT_SECONDS = 10.0  # timeout of the first connection to a cluster
ANSWER_SECONDS = 60.0  # timeout of the check of a node
STOP_SECONDS = 120.0  # time for a job to save before it is killed
LOSSES = 10  # lost processes or nodes after which a job has failed
LOST = 128 + signal.SIGKILL  # the exit code of such a job
PASSED_ON = ("DROL_", "JAX_", "XLA_", "MUJOCO_")  # prefixes of the environment variables that are passed to jobs
GPU_SHARE = 0.75  # fraction of its share of GPU memory that a job preallocates, as jax does for a complete GPU


@dataclass
class RayExecutor:
    """Execute jobs on a Ray cluster.

    Args:
        processes: Concurrent jobs; as many as the cluster has room for if None.
        retries: How often a failed job is retried; the loss of a node does not count as a failure.
        cores: Cores of each job.
        gpus: GPUs of each job; with 0.25, four jobs share one.
        address: The cluster. If None, `RAY_ADDRESS` is used, or else a local cluster is started and shut down after
            the jobs.
    """

    processes: int | None = None
    retries: int = 0
    cores: int = 1
    gpus: float = 0.0
    address: str | None = None

    def __post_init__(self) -> None:
        if self.processes is not None:
            check_at_least("processes", self.processes, 1)
        check_at_least("retries", self.retries, 0)
        check_at_least("cores", self.cores, 1)
        if not 0 <= self.gpus <= 64 or (self.gpus > 1 and self.gpus != int(self.gpus)):
            raise InputError(f"gpus is {self.gpus}; it must be a share of one, such as 0.25, or a whole number")

    def execute(
        self, jobs: Iterable[Job], on_finished: Callable[[Finished], None], keep_going: KeepGoing = lambda: True
    ) -> None:
        with connected(self.address) as ray, stop_requests() as stop:
            workers = RayWorkers(ray, self.processes, self.cores, self.gpus)
            run_jobs(jobs, workers, on_finished, self.retries, lambda: stop.signal is None and keep_going())
        if stop.signal is not None:
            raise KeyboardInterrupt(stop.signal)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a cluster, or start one on this machine; disconnect or shut it down on exit.

    Ray's usage statistics are disabled.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # `Runner` sets the visible GPUs of a job
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("the executor ray needs Ray; install it with: pip install 'drol[ray]'") from error
    if ray.is_initialized():  # by a program that uses drol as a library
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.setdefault("RAY_worker_niceness", "0")  # as in the local executor
    check_answers(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    here = {"num_cpus": available_cores(), "include_dashboard": False}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with warnings.catch_warnings():  # jax warns about forks; Ray's forks call exec at once, which is safe
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(address, **quiet, **(here if address == "local" else {}))
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        words = str(error).strip().partition("\n")[0]
        raise InputError(f"cannot reach the Ray cluster {address} ({words}); `ray status` shows what runs") from error
    try:
        yield ray
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Ray does not restore the handlers
                signal.signal(number, handler)


def check_answers(address: str) -> None:
    """Raise `InputError` if nothing listens at an address; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():  # a keyword such as "auto"
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error}); `ray start --head` prints its address"
        ) from error


class Runner:
    """The actor of a job, on a node until the job ends."""

    def __init__(self, variables: Mapping[str, str], folder: str, gpus: float):
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray sets it; a run must have the same number of threads everywhere
        os.environ.update(variables)
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        elif gpus < 1:
            os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{GPU_SHARE * gpus:.3f}")
        if Path(folder).is_dir():
            os.chdir(folder)
        self.stopping = threading.Event()

    def is_here(self) -> bool:
        """Return True; the result is available once the actor has started."""
        return True

    def run(self, name: str, arguments: tuple[str, ...], log: str, lock: str | None, cores: int) -> tuple[int, float]:
        """Execute the job; return its exit code and its duration in seconds."""
        job, began = Job(name, arguments, Path(log), None if lock is None else Path(lock)), time.monotonic()
        code = do_job(job, cores, self.stopping.is_set)
        stopped = code == 128 + signal.SIGTERM and not self.stopping.is_set()
        seconds = time.monotonic() - began
        return LOST if stopped else code, seconds  # a SIGTERM from outside: the node is being taken away

    def stop(self) -> None:
        """Ask the job to save and end."""
        self.stopping.set()


class RayWork:
    """A job that runs on the cluster or waits for resources there."""

    def __init__(self, ray: Any, job: Job, cores: int, gpus: float):
        self.ray, self.job, self.cores, self.seconds = ray, job, cores, 0.0
        variables = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        kind = ray.remote(Runner).options(
            num_cpus=cores, num_gpus=gpus, max_restarts=LOSSES, max_task_retries=LOSSES, max_concurrency=3
        )
        self.actor = kind.remote(variables, str(Path.cwd()), gpus)
        self.here = self.actor.is_here.remote()
        lock = None if job.lock is None else str(job.lock.absolute())
        self.result = self.actor.run.remote(job.name, job.arguments, str(job.log.absolute()), lock, cores)

    def poll(self) -> int | None:
        if not self.ray.wait([self.result], timeout=0)[0]:
            return None
        try:
            code, self.seconds = self.ray.get(self.result)
            return code
        except (self.ray.exceptions.RayError, InputError) as error:
            with self.job.log.open("a") as log:
                log.write(f"drol: error: {str(error).strip().splitlines()[-1]}\n")
            return LOST

    def stop(self) -> None:
        if self.ray.wait([self.here], timeout=0)[0]:
            self.actor.stop.remote()
        else:  # it still waits for resources
            self.end()

    def wait(self) -> None:
        self.ray.wait([self.result], timeout=STOP_SECONDS)
        self.end()

    def end(self) -> None:
        """Kill the actor and release its resources."""
        self.ray.kill(self.actor)


class RayWorkers:
    """The free places for jobs of a cluster, whose nodes may join and leave."""

    def __init__(self, ray: Any, processes: int | None = None, cores: int = 1, gpus: float = 0.0):
        self.ray, self.processes, self.cores, self.gpus = ray, processes, cores, gpus
        self.busy = 0
        self.checked = False

    def has_room(self) -> bool:
        return self.busy == 0 or self.busy < (self.processes or self.places())

    def places(self) -> int:
        """Return the number of jobs that fit on the nodes that are alive now."""
        return sum(places_of(node["Resources"], self.cores, self.gpus) for node in living_nodes(self.ray))

    def start(self, job: Job) -> RayWork:
        if not self.checked:
            self.check(job.log.parent)
        self.busy += 1
        return RayWork(self.ray, job, self.cores, self.gpus)

    def check(self, folder: Path) -> None:
        """Raise `InputError` for a cluster on which no job can run, before the first job starts."""
        if not self.places():
            wanted = f"{self.cores} core{'s'[: self.cores - 1]}" + (f" and {self.gpus:g} GPUs" if self.gpus else "")
            raise InputError(f"no node of the Ray cluster has {wanted}, which each run asks for; ask for less")
        check_nodes(self.ray, folder)
        self.checked = True

    def release(self, work: RayWork) -> None:
        self.busy -= 1
        work.end()

    def pause(self) -> None:
        time.sleep(POLL_SECONDS)


def living_nodes(ray: Any) -> list[Mapping[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def places_of(resources: Mapping[str, float], cores: int, gpus: float) -> int:
    """Return the number of jobs that fit on a node with these resources."""
    by_cores = int(resources.get("CPU", 0) // cores)
    if not gpus:
        return by_cores
    own = resources.get("GPU", 0)
    return min(by_cores, int(own // gpus) if gpus >= 1 else int(own) * int(1 / gpus + 1e-9))


def look_for(token: str) -> tuple[bool, str]:
    """Return whether this node can read a file, and its version of drol."""
    return Path(token).is_file(), drol.__version__


def check_nodes(ray: Any, folder: Path) -> None:
    """Raise `InputError` if a node cannot read the folder of the runs, or lacks this version of drol."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    folder.mkdir(parents=True, exist_ok=True)
    token = folder.absolute() / f".shared-{uuid.uuid4().hex}"
    write_whole(token, b"")
    try:
        asked = {}
        for node in living_nodes(ray):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            look = ray.remote(look_for).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
            asked[node["NodeManagerAddress"], node["NodeID"]] = look.remote(str(token))
        for (address, _), answer in asked.items():
            try:
                sees, version = ray.get(answer, timeout=ANSWER_SECONDS)
            except ray.exceptions.GetTimeoutError as error:
                raise InputError(
                    f"the node {address} of the Ray cluster did not answer in {ANSWER_SECONDS:.0f} s; see `ray status`"
                ) from error
            except ray.exceptions.RayError as error:
                words = str(error).strip().splitlines()[-1]
                raise InputError(
                    f"the node {address} of the Ray cluster cannot run drol ({words}); install drol there"
                ) from error
            if not sees:
                raise InputError(
                    f"the node {address} of the Ray cluster does not see {folder.absolute()}; the runs must be on "
                    "storage that all nodes share: give a root that is"
                )
            if version != drol.__version__:
                raise InputError(
                    f"the node {address} of the Ray cluster has drol {version} and this machine {drol.__version__}; "
                    "install the same on both"
                )
    finally:
        token.unlink(missing_ok=True)
