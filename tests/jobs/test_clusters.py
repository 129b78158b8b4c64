"""The same tiny sweep here, on a real Ray cluster and on a real SLURM, with nodes and drivers lost: the same bits."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_folders import assert_same_run
from slurm_daemons import missing_slurm, slurm_daemons

from drol.checkpoints import saved_steps
from drol.errors import InputError
from drol.jobs.job import Job
from drol.jobs.slurm import SlurmExecutor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:os.fork"),  # Ray starts programs so, which jax warns of for nothing
]
ROOT = Path(__file__).parents[2]
SWEEP = """
name = "toys"
tasks = ["toy"]
methods = ["bc"]
seeds = [0, 1]
preset = "smoke"
root = "runs"
[settings]
steps = 20_000
log_interval = 1000
evaluation_interval = 10_000
checkpoint_interval = 100
[search]
metric = "offline/single_sample_error"
goal = "lowest"
"""
NAME = "smoke/toy/bc-checkpoint_interval-100-evaluation_interval-10000-log_interval-1000"
DROL = ("-m", "drol.cli.main")
SECONDS = 150  # that anything may take; a machine that is busy with other things is slow


@pytest.fixture(scope="module")
def variables():
    """The environment of all processes: this code, and a Ray without usage statistics and memory killer."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [ROOT / "src", ROOT / "runtime" / "src", ROOT / "tests", *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "4")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


DRIVERS: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def no_driver_is_left():
    yield
    while DRIVERS:
        process = DRIVERS.pop()
        process.kill()
        process.wait()


class Driver:
    """A `drol sweep run` in a folder, which may be killed and started again."""

    def __init__(self, folder: Path, *flags: str):
        self.folder, self.flags = folder, flags
        folder.mkdir(exist_ok=True)
        (folder / "sweep.toml").write_text(SWEEP)
        self.runs = [folder / "runs" / NAME / f"seed-{seed}" for seed in (0, 1)]

    def start(self) -> subprocess.Popen:
        words = ("sweep", "run", "sweep.toml", "--import", "cluster_toys", *self.flags)
        with (self.folder / "output").open("a") as output:
            streams = {"stdout": output, "stderr": output}
            DRIVERS.append(subprocess.Popen([sys.executable, *DROL, *words], cwd=self.folder, **streams))
        return DRIVERS[-1]

    def finish(self, process: subprocess.Popen, code: int = 0) -> None:
        process.wait(SECONDS)
        assert process.returncode == code, (self.folder / "output").read_text() + self.logs()

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in (self.folder / "runs" / "logs").rglob("*.*") if path.is_file())

    def running(self) -> dict[Path, int]:
        """Return the active runs with a checkpoint, and the ids of their processes."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if "drol.jobs.child_process" in words and (process / "cwd").readlink() == self.folder:
                    file = next(Path(word).name for word in words if word.endswith(".json"))
                    names = {run: str(run.relative_to(self.folder / "runs")).replace("/", "_") for run in self.runs}
                    found |= {run: int(process.name) for run, name in names.items() if file.startswith(f"{name}-")}
        return {run: pid for run, pid in found.items() if max(saved_steps(run / "checkpoints"), default=0)}


def wait_for(condition):
    """Return what a function returns, as soon as that is something."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def quiet(variables, tmp_path_factory):
    """The runs as the executor local does them, with nothing going wrong."""
    driver = Driver(tmp_path_factory.mktemp("quiet"))
    driver.finish(driver.start())
    return driver


def assert_same_runs(driver: Driver, quiet: Driver) -> None:
    for run, expected in zip(driver.runs, quiet.runs, strict=True):
        assert_same_run(run, expected)


@pytest.fixture(scope="module")
def cluster(variables):
    pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


def test_a_driver_and_a_ray_node_are_killed_and_the_runs_go_on_elsewhere(cluster, quiet, tmp_path):
    node = cluster.add_node(num_cpus=2)
    driver = Driver(tmp_path / "ray", "--executor", "ray", "--address", cluster.address)
    process = driver.start()
    wait_for(driver.running)
    process.kill()
    process.wait()
    wait_for(lambda: not driver.running())  # they were told, and saved
    process = driver.start()
    lost = wait_for(driver.running)
    for pid in lost.values():
        os.kill(pid, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)
    steps = {run: max(saved_steps(run / "checkpoints")) for run in lost}
    assert all(step < 20_000 for step in steps.values())  # it was in the middle
    cluster.add_node(num_cpus=1)
    driver.finish(process)
    assert_same_runs(driver, quiet)


def test_a_ray_node_without_the_storage_is_found_before_anything_starts(cluster, tmp_path):
    from drol.jobs.ray_cluster import RayExecutor, connected, living_nodes

    hidden = tmp_path / "hidden"
    (hidden / "logs").mkdir(parents=True)
    hide = f"mount -t tmpfs none {hidden} && exec {Path(sys.executable).with_name('ray')}"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no second view of the disk can be made here")
    command = ["unshare", "-m", "sh", "-c", f"{hide} start --address={cluster.address} --num-cpus=1 --block"]
    node = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        with connected(cluster.address) as ray:
            wait_for(lambda: len(living_nodes(ray)) > len(cluster.list_all_nodes()))
            job = Job("a", ("--version",), hidden / "logs" / "a.log")
            with pytest.raises(InputError, match=f"does not see {hidden}.*storage that all nodes share"):
                RayExecutor().execute([job], pytest.fail)
            with pytest.raises(InputError, match=r"no node of the Ray cluster has 1 core and 0\.5 GPUs"):
                RayExecutor(gpus=0.5).execute([job], pytest.fail)
    finally:
        os.killpg(node.pid, signal.SIGTERM)
        node.wait()
    assert [*hidden.rglob("*.*")] == []  # nothing was started, and nothing is left


@pytest.fixture(scope="module")
def slurm_here(variables, tmp_path_factory):
    if reason := missing_slurm():
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch, slurm_daemons(tmp_path_factory.mktemp("slurm") / "daemons") as path:
        patch.setenv("SLURM_CONF", path)
        yield


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def tasks(*states: str) -> list[str]:
    """Return the tasks of drol that are in some state, by their numbers."""
    lines = [line.split() for line in ask("squeue", "-h", "-r", "-t", "all", "-o", "%i %T %j").splitlines()]
    return [number for number, state, name in lines if state in states and name.startswith("drol-")]


def do_not_wait() -> None:
    """Let SLURM start at once what it gives back; it waits for two minutes otherwise."""
    for number in tasks("PENDING"):  # it may have started since, which SLURM calls an error
        subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], capture_output=True, check=False)


def test_slurm_takes_runs_away_and_gives_them_back(slurm_here, quiet, tmp_path):
    driver = Driver(tmp_path / "slurm", "--executor", "slurm", "--sbatch", "--partition=low --comment='of a test'")

    def both_run():
        do_not_wait()  # SLURM may take a moment to give a task back, and the wait with it
        return len(driver.running()) == 2

    process = driver.start()
    wait_for(both_run)
    process.kill()  # the tasks do not mind
    process.wait()
    ask("scancel", "--batch", "--signal=USR1", *tasks("RUNNING"))  # as SLURM does before a time limit
    wait_for(lambda: len(tasks("PENDING")) == 2 and not driver.running())  # they wait before their processes have ended
    time.sleep(2)  # SLURM refuses to start a task in the second in which it was given back
    process = driver.start()
    wait_for(both_run)
    ask("sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 2")
    wait_for(lambda: tasks("PENDING") and not tasks("RUNNING", "COMPLETING"))
    do_not_wait()
    driver.finish(process)
    details = ask("scontrol", "show", "job", "--details", tasks("COMPLETED")[0].split("_")[0])
    restarts = [int(word.removeprefix("Restarts=")) for word in details.split() if word.startswith("Restarts=")]
    assert max(restarts) == 2
    assert "Comment=of a test" in details
    assert len({number.split("_")[0] for number in tasks("COMPLETED")}) == 1  # nothing was handed in twice
    assert_same_runs(driver, quiet)


def test_a_task_that_somebody_cancels_is_not_handed_in_again(slurm_here, tmp_path, monkeypatch):
    monkeypatch.setattr("drol.jobs.slurm.POLL_SECONDS", 0.5)
    (tmp_path / "logs").mkdir()
    commands = {
        "slow": ("--import", "slow_to_import", "algorithms"),
        "quick": ("--version",),
        "bad": ("no-such-command",),
    }
    jobs = [Job(name, command, tmp_path / "logs" / f"{name}.log") for name, command in commands.items()]
    ended = []

    def cancel():
        numbers = tasks("RUNNING")
        if len(ended) == 2 and numbers and (tmp_path / "logs" / "slow.log").exists():
            ask("scancel", *numbers)
        return True

    SlurmExecutor(retries=1, sbatch="--partition=low").execute(jobs, ended.append, cancel)
    assert {each.name: (each.code, each.attempts) for each in ended} == {
        "slow": (143, 1),
        "quick": (0, 1),
        "bad": (2, 1),
    }
    with pytest.raises(InputError, match=r"sbatch failed .*invalid partition"):
        SlurmExecutor(sbatch="--partition=none").execute(jobs, pytest.fail)
    assert len([*(tmp_path / "logs" / "slurm").iterdir()]) == 1  # nothing is left of what was refused


def test_stopping_takes_tasks_out_of_the_queue(slurm_here, tmp_path, monkeypatch):
    monkeypatch.setattr("drol.jobs.slurm.POLL_SECONDS", 0.5)
    (tmp_path / "logs").mkdir()
    before = {*tasks("CANCELLED")}
    job = Job("slow", ("--import", "slow_to_import", "algorithms"), tmp_path / "logs" / "slow.log")
    SlurmExecutor().execute([job], pytest.fail, lambda: not tasks("RUNNING"))
    assert tasks("RUNNING", "PENDING", "COMPLETING") == []
    assert len({*tasks("CANCELLED")} - before) == 1
