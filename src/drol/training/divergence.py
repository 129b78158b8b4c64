"""Detect diverged training before a checkpoint is saved, and record the batches of the last updates."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.checkpoints import named_leaves
from drol.data.dataset import Transitions
from drol.data.on_disk import OnDiskDataset
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.storage import write_whole

MOST_ROWS = 200_000  # rows of batches that the file lists, so that its size is about 1 MB


class Diverged(Exception):
    """A metric or a network was no longer finite."""


@jax.jit
def all_finite(tree: Any) -> Array:
    """Return whether every number of a tree is finite; only the result is transferred from the device."""
    floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return functools.reduce(jnp.logical_and, [jnp.isfinite(leaf).all() for leaf in floats], jnp.asarray(True))


def broken_metrics(metrics: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    """Return the metrics [seed] that are not finite, by index of the seed, then by name, with their values as text."""
    found: dict[int, dict[str, str]] = {}
    for name, values in metrics.items():
        for place, value in enumerate(np.asarray(values, float)):
            if not math.isfinite(value):
                found.setdefault(place, {})[name] = str(value)
    return found


def broken_arrays(tree: Any) -> dict[int, dict[str, str]]:
    """Return the arrays [seed, ...] of a tree that are not finite, by index of the seed, then by name."""
    found: dict[int, dict[str, str]] = {}
    for name, leaf in named_leaves(tree):
        values = np.asarray(leaf)
        if values.dtype.kind == "f":
            for place in np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1)):
                found.setdefault(int(place), {})[name] = "has values that are not finite"
    return found


def record_divergence(
    directory: RunDirectory,
    config: RunConfig,
    dataset: Transitions,
    broken: Mapping[int, Mapping[str, str]],
    updates: range,
    checkpoint: int,
) -> Diverged:
    """Write `diverged.json` and return the error that ends the run.

    Args:
        directory: The folder of the run.
        config: Its settings.
        dataset: The training data.
        broken: The values that are not finite, by index of the seed, then by name.
        updates: The updates that may be the cause. The file lists the newest of them with the rows of their batches.
            Online updates are not listed, because their batches contain experience too.
        checkpoint: The step of the newest checkpoint, which is finite.
    """
    place, batch_size = min(broken), config.algorithm.batch_size
    seed, found = config.seeds[place], broken[place]
    listed = [step for step in updates[-max(1, MOST_ROWS // batch_size) :] if step <= config.steps]
    rows = batch_rows(dataset, batch_size, jax.random.key(seed), listed)
    content = {
        "seed": seed,
        "not_finite": dict(found),
        "first_update": updates[0],
        "last_update": updates[-1],
        "checkpoint": checkpoint,
        "batches": [{"update": step, "rows": each} for step, each in zip(listed, rows, strict=True)],
    }
    write_whole(directory.divergence, json.dumps(content) + "\n")
    return Diverged(
        f"{next(iter(found))} of seed {seed} is not finite at step {updates[-1]}; the last checkpoint, of step "
        f"{checkpoint}, is finite and kept, {directory.divergence} has the rows of the last batches, and a lower "
        "learning rate may help, in a new run that starts from this one"
    )


def batch_rows(dataset: Transitions, batch_size: int, key: Array, updates: Sequence[int]) -> list[list[int]]:
    """Return the rows of the data in the batch of each update of a seed."""
    on_device = dataset.on_device
    cropped = on_device is not None and on_device.crop_probability > 0

    def draw(update: Array) -> Array:  # the same draws as in `train_chunk` and `Dataset.sample`
        batch_key, _ = jax.random.split(jax.random.fold_in(key, update))
        index_key = jax.random.split(batch_key)[0] if cropped else batch_key
        return jax.random.randint(index_key, (batch_size,), 0, dataset.size)

    index = np.asarray(jax.vmap(draw)(jnp.asarray(updates, int)))
    if on_device is not None:
        return np.asarray(on_device.start)[index].tolist()
    ends = cast(OnDiskDataset, dataset).transitions_before_end
    return (index + np.searchsorted(ends, index, side="right")).tolist()
