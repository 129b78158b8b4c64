"""The compiled loop: initial states, many updates of every seed in one call, diagnostics.

All random numbers of update n of a seed derive from the key `fold_in(key(seed), n)`. `split` of this key gives the keys
of the batch and of the update. `fold_in` of this key with 2 gives the key of the action in online training; `fold_in`
with 3 and 4 gives the keys of the diagnostics on training and on validation data.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Sharding

from drol.algorithms.base import Algorithm
from drol.compiling import fast_jit
from drol.data.dataset import Dataset
from drol.transition import Metrics, Spec, Transition

EXPLORATION, DIAGNOSTICS, VALIDATION = 2, 3, 4  # 0 and 1 are the two keys of `split`


def over_seeds(function: Callable, *trees: Any) -> Any:
    """Apply a function to every seed along the first axis; a single seed runs without `vmap`, which is faster."""
    if len(jax.tree.leaves(trees)[0]) == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], trees)))
    return jax.vmap(function)(*trees)


def seed_keys(seeds: tuple[int, ...]) -> Array:
    """Return one key for each seed."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


@fast_jit(static_argnames="spec")
def init_seeds(algorithm: Algorithm, keys: Array, spec: Spec) -> Any:
    """Return the state of every seed before its first update, stacked along a first axis.

    This is compiled so that networks with equal initial values get separate buffers, which can be donated.
    """
    return over_seeds(lambda key: algorithm.init(jax.random.fold_in(key, 0), spec), keys)


@fast_jit()
def zero_totals(algorithm: Algorithm, states: Any, dataset: Dataset, keys: Array) -> Metrics:
    """Return zeros [seed] for each metric, to which `train_chunk` adds its metrics."""

    def metrics_of(state: Any, key: Array) -> Metrics:
        return algorithm.update(state, dataset.sample(key, algorithm.batch_size), key)[1]

    shapes = jax.eval_shape(functools.partial(over_seeds, metrics_of), states, keys)
    return jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)


@fast_jit(static_argnames="batch_sharding", donate_argnames=("states", "totals"))
def train_chunk(
    algorithm: Algorithm,
    states: Any,
    totals: Metrics,
    dataset: Dataset,
    keys: Array,
    first_step: Array | int,
    last_step: Array | int,
    batch_sharding: Sharding | None = None,
) -> tuple[Any, Metrics]:
    """Run the updates `first_step` to `last_step` of every seed on the device and sum their metrics.

    The steps are traced values, so chunks of any length share one compiled program. The division of a run into chunks
    does not change its results. With a sharding, the rows of every batch are split over devices.
    """

    def train_one_seed(state: Any, total: Metrics, key: Array) -> tuple[Any, Metrics]:
        def one_update(step: Array, carry: tuple[Any, Metrics]) -> tuple[Any, Metrics]:
            state, total = carry
            batch_key, update_key = jax.random.split(jax.random.fold_in(key, step))
            batch = dataset.sample(batch_key, algorithm.batch_size)
            if batch_sharding is not None:
                batch = jax.lax.with_sharding_constraint(batch, batch_sharding)
            state, metrics = algorithm.update(state, batch, update_key)
            return state, jax.tree.map(jnp.add, total, metrics)

        return jax.lax.fori_loop(first_step, last_step + 1, one_update, (state, total))

    return over_seeds(train_one_seed, states, totals, keys)


@fast_jit(donate_argnames=("states", "totals"))
def train_batches(
    algorithm: Algorithm,
    states: Any,
    totals: Metrics,
    batches: Transition,
    keys: Array,
    first_step: Array | int,
    begin: Array | int,
    end: Array | int,
) -> tuple[Any, Metrics]:
    """Run an update on each of the batches number `begin` to `end - 1` in `batches` [seed, number, batch, ...].

    `first_step` is the step of batch number 0. Otherwise the function does the same as `train_chunk`.
    """

    def train_one_seed(state: Any, total: Metrics, batches: Transition, key: Array) -> tuple[Any, Metrics]:
        def one_update(number: Array, carry: tuple[Any, Metrics]) -> tuple[Any, Metrics]:
            state, total = carry
            _, update_key = jax.random.split(jax.random.fold_in(key, first_step + number))
            batch = jax.tree.map(lambda leaf: leaf[number], batches)
            state, metrics = algorithm.update(state, batch, update_key)
            return state, jax.tree.map(jnp.add, total, metrics)

        return jax.lax.fori_loop(begin, end, one_update, (state, total))

    return over_seeds(train_one_seed, states, totals, batches, keys)


@fast_jit()
def diagnose_seeds(
    algorithm: Algorithm, states: Any, dataset: Dataset, keys: Array, step: Array | int, purpose: Array | int
) -> Metrics:
    """Return the algorithm's diagnostics [seed] on one batch of the dataset.

    `purpose` is `DIAGNOSTICS` or `VALIDATION`.
    """

    def diagnose_one_seed(state: Any, key: Array) -> Metrics:
        own_key = jax.random.fold_in(jax.random.fold_in(key, step), purpose)
        batch_key, draw_key = jax.random.split(own_key)
        return algorithm.diagnose(state, dataset.sample(batch_key, algorithm.batch_size), draw_key)

    return over_seeds(diagnose_one_seed, states, keys)
