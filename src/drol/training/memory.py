"""Estimate a run's memory before allocating it, so that it fails with a message instead of being killed.

The constants were measured on two cores, with networks of 32 to 2048 units, batches of 256 to 65,536 and data of 60 and
500 MB; docs/performance.md has the measurements.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from drol.algorithms.base import Algorithm
from drol.data.on_disk import READ_AHEAD
from drol.errors import InputError
from drol.machine import EVALUATION_BYTES, PROGRAM_BYTES, available_cores, bytes_in_words, free_memory
from drol.runs.config import RunConfig
from drol.tasks.base import Task
from drol.training.placement import Placement
from drol.training.updates import BATCHES_AT_ONCE
from drol.transition import Spec, Transition

STATE_COPIES = 3  # the state, the new state of an update, and the copy that a checkpoint writes
BATCHES_READ = (READ_AHEAD + 2) * BATCHES_AT_ONCE  # batches of data on disk that are waiting, being read or in use
SMALL_BATCH = 250_000_000  # bytes; an update that needs less is not estimated, because `PROGRAM_BYTES` covers it


def check_memory(config: RunConfig, task: Task, placement: Placement) -> None:
    """Raise `InputError` if a run does not fit into the free memory; the message has the bytes of each part."""
    free = free_memory()
    if free is None or jax.default_backend() != "cpu":
        return
    parts = needed_memory(config, task, placement)
    if sum(parts.values()) > free:
        named = ", ".join(f"{name} {bytes_in_words(count)}" for name, count in parts.items() if count)
        raise InputError(
            f"training needs about {bytes_in_words(sum(parts.values()))} of memory ({named}) and "
            f"{bytes_in_words(free)} are free; smaller networks or batches or fewer seeds at once need less"
        )


def needed_memory(config: RunConfig, task: Task, placement: Placement) -> dict[str, int]:
    """Estimate the bytes of each part of a run, without the loaded data."""
    algorithm, spec, seeds = config.algorithm, task.train.spec, len(config.seeds)
    state_bytes, batch_bytes = update_memory(algorithm, spec)
    at_once = min(seeds, available_cores()) if placement.spread == "threads" else seeds
    row = 4 * (spec.observation_size + spec.action_size + 4)
    on_device, standardised = task.train.on_device, 0
    if on_device is None:
        batch_bytes += BATCHES_READ * 2 * row * algorithm.batch_size
    elif config.standardise_observations:
        standardised = nbytes(on_device.observation)
    return {
        "programs": PROGRAM_BYTES,
        "evaluations": EVALUATION_BYTES if task.make_environment is None else 0,
        "networks": STATE_COPIES * seeds * state_bytes,
        "batches": at_once * batch_bytes,
        "standardised data": standardised,
        "online steps": 2 * seeds * row * min(config.replay_size or config.online_steps, config.online_steps),
    }


@functools.lru_cache
def update_memory(algorithm: Algorithm, spec: Spec) -> tuple[int, int]:
    """Return the bytes of the state of one seed, and an estimate of the additional bytes that one update uses."""
    state = jax.eval_shape(lambda key: algorithm.init(key, spec), jax.random.key(0))
    return sum(map(nbytes, jax.tree.leaves(state))), batch_memory(algorithm, state, spec)


def batch_memory(algorithm: Algorithm, state: Any, spec: Spec) -> int:
    """Estimate the peak memory of one update: all matrix products and convolutions, and the outputs of loops.

    Return 0 if the hyperparameters show that the peak is small, because tracing an update takes half a second.
    """
    values = algorithm.to_dict()
    counts = [max(1, value) for value in values.values() if type(value) is int]  # batch size, number of candidates
    widths = [width for value in values.values() if isinstance(value, tuple) for width in value]
    if 4 * math.prod(counts) * max(spec.observation_size, sum(widths)) < SMALL_BATCH:
        return 0

    def rows(*shape: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((algorithm.batch_size, *shape), dtype)

    kind = np.uint8 if len(spec.observation_shape) == 3 else np.float32
    observation, action = rows(*spec.observation_shape, dtype=kind), rows(spec.action_size)
    batch: Any = Transition(observation, action, rows(), rows(), observation, action, rows())  # type: ignore[arg-type]
    program = jax.make_jaxpr(algorithm.update)(state, batch, jax.random.key(0))
    kept = ("dot_general", "conv_general_dilated", "scan")
    return sum(nbytes(each.aval) for step in steps_of(program.jaxpr, kept) for each in step.outvars)


def steps_of(program: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the operations of a traced program, and of the programs inside it, that have one of these names."""
    for step in program.eqns:
        if step.primitive.name in names:
            yield step
        for value in step.params.values():
            for inner in value if isinstance(value, list | tuple) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from steps_of(inner, names)


def nbytes(leaf: Any) -> int:
    """Return the size in bytes of an array, or of an object with a shape and a dtype."""
    return math.prod(leaf.shape) * leaf.dtype.itemsize
