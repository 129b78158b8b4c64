"""A run that the memory does not hold is refused with the numbers, before any of it is taken."""

import dataclasses
import resource
import subprocess
import sys

import pytest
from toys import SPEC, TINY, tiny_config, tiny_task

from drol.algorithms import ALGORITHMS
from drol.errors import InputError
from drol.training import memory
from drol.training.memory import check_memory, needed_memory, update_memory
from drol.training.placement import ONE_DEVICE, Placement
from drol.training.train import train

GB = 10**9


def with_free(monkeypatch, count):
    monkeypatch.setattr(memory, "free_memory", lambda: count)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"hidden_sizes": (65536, 65536)}, "networks 567 GB"),
        ({"hidden_sizes": (512, 512), "batch_size": 1_000_000}, "batches"),
        ({"hidden_sizes": (512, 512), "num_candidates": 65536}, "batches"),
    ],
)
def test_networks_and_batches_that_are_too_large_are_refused_with_what_takes_how_much(
    monkeypatch, tmp_path, changes, part
):
    with_free(monkeypatch, 8 * GB)
    config = tiny_config(algorithm=dataclasses.replace(TINY, **changes), seeds=(0,))
    with pytest.raises(InputError) as caught:
        train(config, tmp_path / "run", tiny_task(), quiet=True)
    message = str(caught.value)
    assert message.startswith("training needs about ")
    assert part in message
    assert "8 GB are free; smaller networks or batches or fewer seeds at once need less" in message
    assert not (tmp_path / "run").exists()


def test_experience_of_online_steps_counts(monkeypatch):
    with_free(monkeypatch, 8 * GB)
    config = tiny_config(online_steps=10**9)
    with pytest.raises(InputError, match=r"online steps 144 GB"):
        check_memory(config, tiny_task(), ONE_DEVICE)
    check_memory(dataclasses.replace(config, replay_size=1000), tiny_task(), ONE_DEVICE)


def test_where_the_free_memory_is_not_known_nothing_is_refused(monkeypatch):
    with_free(monkeypatch, None)
    check_memory(tiny_config(online_steps=10**12), tiny_task(), ONE_DEVICE)


def test_every_seed_counts_and_threads_only_hold_the_batches_that_are_under_way(monkeypatch):
    algorithm = dataclasses.replace(TINY, batch_size=1_000_000)
    monkeypatch.setattr(memory, "available_cores", lambda: 2)
    one, four = (
        needed_memory(tiny_config(algorithm=algorithm, seeds=seeds), tiny_task(), Placement(spread="threads"))
        for seeds in ((0,), (0, 1, 2, 3))
    )
    assert four["networks"] == 4 * one["networks"] > 0
    assert four["batches"] == 2 * one["batches"] > 0


def test_data_alone_and_standardised_data_take_more(monkeypatch):
    simulated, alone = (needed_memory(tiny_config(), tiny_task(kind), ONE_DEVICE) for kind in ("healthy", None))
    assert (simulated["evaluations"], alone["evaluations"]) == (0, memory.EVALUATION_BYTES)
    standardised = needed_memory(tiny_config(standardise_observations=True), tiny_task(), ONE_DEVICE)
    assert standardised["standardised data"] == tiny_task().train.observation.nbytes


def test_settings_that_nobody_calls_large_are_not_traced():
    assert update_memory(TINY, SPEC)[1] == 0


@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"sorl"}))  # which takes a second to trace
def test_a_larger_batch_of_any_algorithm_needs_more(name):
    small, large = (
        update_memory(ALGORITHMS[name](hidden_sizes=(1024,), batch_size=count), SPEC)[1] for count in (10**5, 10**6)
    )
    assert large > 9 * small > 9 * 10**5 * 1024 * 4


# The address space is limited before anything is imported, as `ulimit -v` does it.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
from drol.cli.main import main
sys.exit(main(["train", "--preset", "laptop", "--out", sys.argv[2]]))
"""


def test_a_limit_of_the_address_space_is_seen_before_jax_aborts(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY, "this test needs to set the limit"
    line = [sys.executable, "-c", LIMITED, str(1_900_000_000), str(tmp_path / "run")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("drol: error: training needs about ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
