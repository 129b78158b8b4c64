"""Two virtual devices do what one device does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drol.errors import InputError
from drol.training.placement import ONE_DEVICE, place

pytestmark = pytest.mark.usefixtures("quick_compile")

TESTS = Path(__file__).parents[1]


def start(*arguments: str, devices: int = 1) -> subprocess.Popen:
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
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


def test_one_device_needs_no_placement():
    assert place(seeds=1, batch_size=256) is ONE_DEVICE
    tree = {"a": np.ones(3)}
    assert ONE_DEVICE.put_seeds(tree) is tree
    assert ONE_DEVICE.gather(tree) is tree


@pytest.mark.parametrize("count", [0, 5])
def test_more_devices_than_there_are_is_refused(count):
    with pytest.raises(InputError, match=f"--devices is {count}; it must be from 1 to 1"):
        place(1, 256, count)
