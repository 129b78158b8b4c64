"""Two virtual devices of one process, and two processes, do what one device does."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from drol.errors import InputError
from drol.runs.directory import RunDirectory
from drol.training.placement import ONE_DEVICE, join, place

pytestmark = pytest.mark.usefixtures("quick_compile")

TESTS = Path(__file__).parents[1]
TRAIN = (
    *("train", "--preset", "laptop", "--steps", "6", "--hidden-sizes", "16", "16", "--batch-size", "32"),
    *("--log-interval", "3", "--evaluation-interval", "6", "--evaluation-episodes", "1", "--checkpoint-interval", "3"),
    *("--processes", "1", "--quiet"),
)


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


def test_two_processes_train_one_run_and_the_first_writes_it(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    together = ("--coordinator", f"127.0.0.1:{port}", "--process-count", "2", "--process-index")
    folders = {index: str(tmp_path / f"process{index}") for index in (0, 1)}
    processes = [
        start("-m", "drol.cli.main", *TRAIN, "--out", folders[index], *together, str(index)) for index in (0, 1)
    ]
    alone = start("-m", "drol.cli.main", *TRAIN, "--out", str(tmp_path / "alone"))
    lines = [output(process) for process in (*processes, alone)]
    assert "score after 6 updates" in lines[0]
    assert "followed process 0 to step 6" in lines[1]
    assert not Path(folders[1]).exists()
    found, expected = (
        load_file(tmp_path / name / "checkpoints" / "000000006" / "arrays.safetensors")
        for name in ("process0", "alone")
    )
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-6, err_msg=name)
    rows = [RunDirectory(tmp_path / name).read_metrics() for name in ("process0", "alone")]
    assert [row["step"] for row in rows[0]] == [3, 6]
    assert rows[0][-1]["critic_loss"] == pytest.approx(rows[1][-1]["critic_loss"], rel=1e-4)


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
    assert ONE_DEVICE.agree(7) == 7


@pytest.mark.parametrize("count", [0, 5])
def test_more_devices_than_there_are_is_refused(count):
    with pytest.raises(InputError, match=f"--devices is {count}; it must be from 1 to 1"):
        place(1, 256, count)


def test_an_index_outside_the_count_is_refused_before_anything_is_joined():
    with pytest.raises(InputError, match="process 2 of 2: --process-index counts from 0"):
        join("127.0.0.1:1", 2, 2)
