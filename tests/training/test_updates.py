"""Training from disk does what training from memory does."""

import jax
import numpy as np
import pytest
from toys import TINY, random_rows, tiny_config, tiny_task

from drol.data.dataset import Dataset
from drol.data.on_disk import OnDiskDataset
from drol.runs.directory import RunDirectory
from drol.training import updates
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.placement import place
from drol.training.train import train
from drol.training.updates import Updates

ROWS = random_rows([50, 100, 50])
MEMORY = Dataset.from_rows(**ROWS)


def on_disk() -> OnDiskDataset:
    rows = ROWS | {"action": np.asarray(MEMORY.action)}
    return OnDiskDataset({name: np.asarray(array) for name, array in rows.items()}, MEMORY.fingerprint())


def run(dataset, stretches, seeds):
    keys = seed_keys(seeds)
    placement = place(len(seeds), TINY.batch_size)
    states = init_seeds(TINY, keys, MEMORY.spec)
    states, totals = map(placement.put_seeds, (states, zero_totals(TINY, states, MEMORY, keys)))
    run_updates = Updates(TINY, dataset, keys, 100, placement)
    for first, last in stretches:
        states, totals = run_updates.run(states, totals, first, last)
    return placement.gather(states), placement.gather(totals)


@pytest.mark.parametrize("seeds", [(3,), (0, 7)])
def test_data_on_disk_trains_as_data_in_memory(monkeypatch, seeds):
    monkeypatch.setattr(updates, "BATCHES_AT_ONCE", 4)
    expected = run(MEMORY, [(1, 11)], seeds)
    found = run(on_disk(), [(1, 3), (4, 9), (10, 11)], seeds)  # stretches that end inside what was read, and across it
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_run_on_disk_can_be_stopped_and_goes_on(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for path, steps in ((whole, [12]), (parts, [5, 12])):
        for count in steps:
            task = tiny_task(environment=None, train=on_disk(), validation=on_disk())
            train(tiny_config(steps=count, standardise_observations=True), path, task, quiet=True)
    newest = "checkpoints/000000012/arrays.safetensors"
    assert (parts / newest).read_bytes() == (whole / newest).read_bytes()
    assert RunDirectory(whole).read_metrics()[-1].values["diagnostics/candidate_divergence"] > 0


def test_a_seed_learns_the_same_alone_and_beside_others():
    """On a CPU each seed is a separate program, so results do not depend on the other seeds."""
    together = run(MEMORY, [(1, 4), (5, 9)], (0, 7, 3))
    for index, seed in enumerate((0, 7, 3)):
        alone = run(MEMORY, [(1, 9)], (seed,))
        for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(one[index], other[0])
