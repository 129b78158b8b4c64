"""Check an installation and its machine: versions, devices, rendering, folders, and a short training."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import drol
from drol.algorithms.bc import BC
from drol.data.dataset import Dataset
from drol.data.store.layout import data_root
from drol.errors import plain
from drol.machine import available_cores, bytes_in_words, free_memory
from drol.runs.config import RunConfig
from drol.tasks import DEFAULT_TASK, load_task
from drol.tasks.base import Task, task_from
from drol.training.train import train

CORE = ("jax", "equinox", "optax", "numpy", "scipy", "safetensors")
OPTIONAL = (
    "ogbench",
    "mujoco",
    "gymnasium",
    "matplotlib",
    "h5py",
    "pyarrow",
    "rosbags",
    "onnx",
    "starlette",
    "ray",
    "wandb",
)
DRAWING_SECONDS = 60.0
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
    """The result of one check; `advice` is set only for a problem."""

    subject: str
    words: str
    advice: str = ""


def doctor() -> Iterator[Finding]:
    """Yield a finding for each check of versions, devices, rendering, folders and training."""
    yield from check_versions()
    yield Finding("device", describe_machine()["device"])
    memory = free_memory()
    yield Finding("memory", "unknown" if memory is None else f"{bytes_in_words(memory)} free")
    yield check_rendering()
    yield check_folder("datasets", data_root(), "set DROL_DATA to another folder")
    yield check_folder("runs", Path("runs"), "work in another folder, or give --out")
    yield check_training()


def check_versions() -> Iterator[Finding]:
    """Yield the versions of drol, of its required packages and of its optional packages."""
    yield Finding("drol", f"{drol.__version__} in {Path(drol.__file__).parent}, Python {platform.python_version()}")
    for subject, names in (("packages", CORE), ("optional", OPTIONAL)):
        yield Finding(subject, ", ".join(f"{name} {installed_version(name) or 'is not installed'}" for name in names))


def installed_version(name: str) -> str | None:
    """Return the version of a distribution, or None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_machine() -> dict[str, Any]:
    """Return the devices, the cores and the version of jax, to record with measurements; mention an unused GPU."""
    device = jax.devices()[0]
    cores = available_cores()
    words = f"CPU with {cores} core{'s' * (cores != 1)}"
    if device.platform != "cpu":
        words = f"{device.platform.upper()} {device.device_kind} and a {words}"
    elif Path("/proc/driver/nvidia/gpus").exists():
        words += "; there is a GPU that jax does not use: pip install 'drol[cuda12]'"
    return {"device": words, "platform": device.platform, "cores": cores, "jax": jax.__version__}


def check_rendering() -> Finding:
    """Render a picture without a screen, in a separate process, because a faulty driver may crash it."""
    if installed_version("mujoco") is None:
        return Finding("rendering", "not tried, because MuJoCo is not installed")
    try:
        command = [sys.executable, "-c", DRAWING]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DRAWING_SECONDS)
        lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        fault = plain(lines[-1]) if answer.returncode else ""
    except subprocess.TimeoutExpired:
        fault = f"no picture in {DRAWING_SECONDS:g} s"
    if fault:
        advice = "install libegl1 (Debian, Ubuntu) or set MUJOCO_GL to osmesa; only images and videos need it"
        return Finding("rendering", f"MuJoCo cannot draw without a screen: {fault}", advice)
    return Finding("rendering", "MuJoCo draws without a screen")


def check_folder(subject: str, folder: Path, advice: str) -> Finding:
    """Check that files can be written below a folder; the folder may be missing."""
    folder = folder.absolute()
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        return Finding(subject, f"{existing} cannot be written", advice)
    return Finding(subject, f"{folder}, {bytes_in_words(shutil.disk_usage(existing).free)} free")


def check_training() -> Finding:
    """Train and evaluate a very small policy in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            task = small_task()
            config = RunConfig(BC(hidden_sizes=(16, 16), batch_size=16), task.name, steps=1, evaluation_episodes=1)
            rows = train(config, Path(folder) / "run", task, processes=1, quiet=True).evaluations
        except Exception as error:  # any error is a finding
            words = plain(f"one update fails with {type(error).__name__}: {error}")
            return Finding("training", words, "fix the problems above, then run drol doctor again")
    where = "in the simulator" if rows[-1].episodes else "on data, because OGBench is not installed"
    return Finding("training", f"one update and its evaluation {where}")


def small_task() -> Task:
    """Return the maze task that is shipped with drol; without its simulator, a task of random data."""
    if installed_version("ogbench"):
        return load_task(DEFAULT_TASK)
    rows = np.random.default_rng(0).uniform(-0.9, 0.9, (2, 200, 2))
    data = Dataset.from_arrays(rows[0], rows[1], np.zeros(200), np.arange(200) % 20 == 19, ends="terminal")
    return task_from(data, "doctor", validation=data)
