"""Look at an installation and its machine: what is right, what is wrong, and what to do about it."""

import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jax
import numpy as np
from packaging.requirements import Requirement

import drol
from drol.algorithms.bc import BC
from drol.compiling import WANTED, compiler_options
from drol.data.dataset import Dataset
from drol.data.reachability import find_reachable
from drol.data.store.layout import data_root, dataset_names
from drol.errors import InputError, plain
from drol.experiments.bench.machine import describe_machine
from drol.machine import bytes_in_words, free_memory
from drol.runs.config import RunConfig
from drol.tasks import DEFAULT_TASK, known_sources, load_task
from drol.tasks.base import Task, task_from
from drol.training.train import train

OK, NOTE, PROBLEM = "ok", "note", "problem"
ENOUGH_MEMORY, ENOUGH_SPACE = 10**9, 5 * 10**8
NETWORK_SECONDS, DRAWING_SECONDS = 2.0, 60.0
EXTRAS = {  # what each is for
    "ogbench": "OGBench's tasks in their simulator",
    "d4rl": "D4RL's tasks in their simulator",
    "hdf5": "HDF5 files",
    "lerobot": "LeRobot's Parquet files",
    "ros": "bags of ROS 2 and MCAP",
    "report": "reports and figures",
    "onnx": "policies as ONNX files",
    "cuda12": "NVIDIA GPUs",
    "ray": "sweeps on Ray clusters, asynchronous halving",
    "wandb": "runs mirrored in Weights & Biases",
    "tensorboard": "runs mirrored in TensorBoard",
    "trackio": "runs mirrored in trackio",
    "docs": "the documentation site",
}
DRAWING = """
from drol.tasks.ogbench.environment import draw_without_screen
draw_without_screen()
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco/>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 8, 8) as renderer:
    renderer.update_scene(data)
    assert renderer.render().shape == (8, 8, 3)
"""


@dataclass(frozen=True)
class Finding:
    """What was found about one subject.

    Attributes:
        subject: What was looked at.
        state: "ok", "note" for what is worth knowing, or "problem".
        words: What was found.
        advice: What to do about a problem.
    """

    subject: str
    state: str
    words: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def doctor(mirrors: Sequence[str] = (), report: Callable[[Finding], None] | None = None) -> list[Finding]:
    """Look at versions, devices, rendering, folders, space, memory and network, and train and evaluate for a moment.

    Args:
        mirrors: Addresses of mirrors to try, beside those where datasets are published.
        report: Called with each finding as it is made.

    Returns:
        The findings; those whose `state` is "problem" have an `advice`.
    """
    findings = []
    checks = (check_versions, check_extras, check_devices, check_rendering, check_folders, check_room)
    for check in (*checks, lambda: check_network(mirrors), check_training):
        for finding in check():
            findings.append(finding)
            if report:
                report(finding)
    return findings


def installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def own_requirements() -> list[Requirement]:
    """Return what drol itself says that it needs, with extras; nothing if it is used without being installed."""
    try:
        return [Requirement(line) for line in importlib.metadata.requires("drol") or ()]
    except importlib.metadata.PackageNotFoundError:
        return []


def applies(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def check_versions() -> Iterator[Finding]:
    """Compare versions with what drol needs, and with those that were tested together, where the checkout is there."""
    yield Finding("drol", OK, f"{drol.__version__} in {Path(drol.__file__).parent}, Python {platform.python_version()}")
    wrong = []
    for requirement in own_requirements():
        version = installed_version(requirement.name)
        extras = [extra for extra in EXTRAS if applies(requirement, extra) and not applies(requirement)]
        if version is None and applies(requirement):
            wrong.append(f"{requirement.name} is missing")
        elif version and (extras or applies(requirement)) and not requirement.specifier.contains(version, True):
            wrong.append(f"{requirement.name} is {version}, needed is {requirement.specifier}")
    if wrong:
        advice = "pip install --upgrade drol, with the extras that you use, or ./run of a checkout"
        yield Finding("packages", PROBLEM, "; ".join(wrong), advice)
    pins = Path(drol.__file__).parents[2] / "constraints.txt"
    if not pins.is_file():
        if not wrong:
            yield Finding("packages", OK, "all that drol needs is installed")
        return
    others = []
    for pin in map(Requirement, pins.read_text().splitlines()):
        version = installed_version(pin.name)
        if version and applies(pin) and not pin.specifier.contains(version, True):
            others.append(f"{pin.name} {version} (tested: {str(pin.specifier).removeprefix('==')})")
    if others:
        yield Finding("packages", NOTE, f"not the versions of constraints.txt: {', '.join(others)}")
    elif not wrong:
        yield Finding("packages", OK, "the versions of constraints.txt")


def check_extras() -> Iterator[Finding]:
    """Name the extras of which something is not installed."""
    for extra, purpose in EXTRAS.items():
        needed = [each for each in own_requirements() if applies(each, extra) and not applies(each)]
        missing = sorted({each.name for each in needed if each.name != "drol" and not installed_version(each.name)})
        if extra == "cuda12":
            missing = [] if installed_version("jax-cuda12-plugin") else ["jax[cuda12]"]
        if missing:
            words = f"not installed ({', '.join(missing)}), for {purpose}: pip install 'drol[{extra}]'"
            yield Finding(f"extra {extra}", NOTE, words)
        else:
            yield Finding(f"extra {extra}", OK, f"installed, for {purpose}")


def check_devices() -> Iterator[Finding]:
    """Say what jax computes on, and which of the options that make it faster its compiler knows."""
    yield Finding("device", OK, f"{describe_machine()['device']}, jax {jax.__version__}")
    known = compiler_options()
    unknown = [name for name in WANTED.get(jax.default_backend(), {}) if name not in known]
    if unknown:
        yield Finding("compiler", NOTE, f"this XLA does not know {', '.join(unknown)}; training may be slower")
    else:
        yield Finding("compiler", OK, f"options in force: {', '.join(known) or 'those of XLA'}")


def check_rendering() -> Iterator[Finding]:
    """Draw a picture without a screen, in a process of its own, because a driver may end it."""
    if installed_version("mujoco") is None:
        yield Finding("rendering", NOTE, "not tried, MuJoCo is not installed")
        return
    advice = "install libegl1 (Debian, Ubuntu) or set MUJOCO_GL to osmesa; only images and videos need it"
    try:
        command = [sys.executable, "-c", DRAWING]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DRAWING_SECONDS)
    except subprocess.TimeoutExpired:
        yield Finding("rendering", PROBLEM, f"MuJoCo drew nothing in {DRAWING_SECONDS:g} s", advice)
        return
    if answer.returncode:
        reason = plain((answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1])
        yield Finding("rendering", PROBLEM, f"MuJoCo cannot draw without a screen: {reason}", advice)
    else:
        yield Finding("rendering", OK, "MuJoCo draws without a screen")


def check_folders() -> Iterator[Finding]:
    """Look whether imported datasets and runs can be written."""
    root, runs = data_root().absolute(), Path("runs").absolute()
    for subject, folder, words in (
        ("data folder", root, f"{len(dataset_names(root))} imported datasets in {root}"),
        ("runs", runs, f"runs go to {runs}"),
    ):
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if there.is_dir() and os.access(there, os.W_OK):
            yield Finding(subject, OK, words)
        else:
            advice = "set DROL_DATA to another folder" if folder == root else "work in another folder, or give --out"
            yield Finding(subject, PROBLEM, f"{there} cannot be written", advice)


def check_room() -> Iterator[Finding]:
    """Look at free space and memory."""
    space = shutil.disk_usage(Path.cwd()).free
    advice = "make room; a run of the paper's size takes about 100 MB, a dataset up to 10 GB"
    yield enough("space", space, ENOUGH_SPACE, f"{bytes_in_words(space)} free in {Path.cwd()}", advice)
    memory = free_memory()
    if memory is None:
        yield Finding("memory", NOTE, "this system does not say how much is free")
    else:
        advice = "end other programs, or raise the limit of this job"
        yield enough("memory", memory, ENOUGH_MEMORY, f"{bytes_in_words(memory)} free", advice)


def enough(subject: str, amount: int, least: int, words: str, advice: str) -> Finding:
    if amount >= least:
        return Finding(subject, OK, words)
    return Finding(subject, PROBLEM, f"{words}; at least {bytes_in_words(least)} are needed", advice)


def check_network(mirrors: Sequence[str]) -> Iterator[Finding]:
    """Try mirrors and the servers where datasets are published, all at once; to have no network is no problem."""
    addresses = list(mirrors)
    for source in known_sources().values():
        entry = next((each for each in source.datasets() if "download" in each.ways and each.files), None)
        if entry:
            with contextlib.suppress(InputError):  # the package that knows the address is not installed
                addresses += source.file_addresses(entry.files[0])
    addresses = list({urlsplit(each).netloc: each for each in addresses}.values())  # one of each server
    reachable, reasons = find_reachable(addresses, NETWORK_SECONDS)
    if reasons:
        words = f"{len(reachable)} of {len(addresses)} servers of datasets can be reached ({'; '.join(reasons)})"
        yield Finding("network", NOTE, plain(f"{words}; what is on this machine can be used without"))
    else:
        yield Finding("network", OK, f"all {len(addresses)} servers of datasets can be reached")


def check_training() -> Iterator[Finding]:
    """Train and evaluate a very small policy in a folder that is removed; without a simulator, judge it by data."""
    config: dict[str, Any] = {"steps": 20, "log_interval": 10, "evaluation_interval": 20, "checkpoint_interval": 20}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            task = small_task()
            small = RunConfig(BC(hidden_sizes=(16, 16), batch_size=16), task.name, evaluation_episodes=1, **config)
            rows = train(small, Path(folder) / "run", task, processes=1, quiet=True).evaluations
        except Exception as error:  # whatever it is, it is what was asked for
            words = plain(f"a training ends with {type(error).__name__}: {error}")
            yield Finding("training", PROBLEM, words, "mend what the lines above say, then run drol doctor again")
            return
    judged = "in the simulator" if rows[-1].episodes else "by held-out data, as no simulator is installed"
    words = f"{small.steps} updates and {len(rows)} evaluations {judged} in {time.monotonic() - started:.0f} s"
    yield Finding("training", OK, words)


def small_task() -> Task:
    """Return the maze that is shipped with drol or, where its simulator is missing, random data."""
    if installed_version("ogbench"):
        return load_task(DEFAULT_TASK)
    generator = np.random.default_rng(0)
    rows = generator.uniform(-0.9, 0.9, (2, 200, 2))
    data = Dataset.from_arrays(rows[0], rows[1], np.zeros(200), np.arange(200) % 20 == 19, ends="terminal")
    return task_from(data, "doctor", validation=data)
