"""Two virtual devices do what one device does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from toys import tiny_config, tiny_task

from drol.errors import InputError
from drol.runs.directory import RunDirectory
from drol.stop_signals import StopRequest
from drol.training.placement import ONE_DEVICE, Placement, place
from drol.training.trainer import Trainer

TESTS = Path(__file__).parents[1]


def start(*arguments: str, devices: int = 1) -> subprocess.Popen:
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(TESTS),
    }
    return subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(process: subprocess.Popen) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


def test_two_devices_train_as_one_does():
    answer = json.loads(output(start(str(TESTS / "two_devices.py"), devices=2)))
    spreads = {seeds: spread for seeds, (spread, _) in answer["found"].items()}
    assert spreads == {"1": "batch", "2": "seeds"}
    assert max(difference for _, difference in answer["found"].values()) <= 1e-6
    assert answer["sums"] > 0  # the gradients of both halves are added up


def test_seeds_on_one_cpu_have_arrays_of_their_own():
    placement = place(seeds=3, batch_size=256)
    assert str(placement) == "a thread for each seed"
    tree = {"a": np.arange(6).reshape(3, 2), "b": np.arange(3)}
    apart = placement.put_seeds(tree)
    assert [seed["a"].tolist() for seed in apart] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    for name, array in placement.gather(apart).items():
        np.testing.assert_array_equal(array, tree[name])


@pytest.mark.parametrize("first", [Placement(spread="threads"), ONE_DEVICE], ids=str)
def test_a_checkpoint_of_seeds_in_threads_loads_where_they_are_one_program_and_back(first, tmp_path):
    """Loaded states are bit-identical; training from them is equal up to rounding."""
    second = ONE_DEVICE if first.spread == "threads" else Placement(spread="threads")
    task = tiny_task(None)

    def trained(folder, placement, steps):
        with (directory := RunDirectory(tmp_path / folder)).locked():
            trainer = Trainer(tiny_config(steps=steps), directory, task, placement, quiet=True)
            trainer.resume()
            start = trainer.step, jax.tree.map(np.array, trainer.placement.gather(trainer.states))  # they are donated
            trainer.train(StopRequest())
        return start, trainer.placement.gather(trainer.states)

    _, saved = trained("moved", first, 4)
    (step, loaded), moved = trained("moved", second, 12)
    assert step == 4
    jax.tree.map(np.testing.assert_array_equal, loaded, saved)
    _, quiet = trained("quiet", first, 12)
    jax.tree.map(lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-5), moved, quiet)
    rows = [RunDirectory(tmp_path / name).read_metrics() for name in ("moved", "quiet")]
    assert [(row.step, row.seed) for row in rows[0]] == [(row.step, row.seed) for row in rows[1]]
    assert "placement" in RunDirectory(tmp_path / "moved").read_config()["circumstances"]


def test_one_device_needs_no_placement():
    assert place(seeds=1, batch_size=256) is ONE_DEVICE
    tree = {"a": np.ones(3)}
    assert ONE_DEVICE.put_seeds(tree) is tree
    assert ONE_DEVICE.gather(tree) is tree


@pytest.mark.parametrize("count", [0, 5])
def test_more_devices_than_there_are_is_refused(count):
    with pytest.raises(InputError, match=f"^devices is {count}; this machine has 1 device$"):
        place(1, 256, count)
