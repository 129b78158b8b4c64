"""Everything that runs on the device: initial states, and many updates of every seed in one call."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Sharding

from drol.algorithms.base import Algorithm
from drol.data.dataset import Dataset
from drol.types import Metrics, Spec, Transition

# XLA's newer library of CPU kernels runs single-precision products slower than the one before it: one update at the
# paper's size took 110 ms with it and 85 ms without. Products in half precision are fast only with it
# (docs/performance.md).
KERNEL_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
VECTOR_WIDTH = "xla_cpu_prefer_vector_width"  # in bits; XLA takes half of what AVX-512 has unless it is asked


@functools.cache
def compiler_options(half_precision: bool = False) -> dict[str, str]:
    """The wanted options, as far as this version of XLA knows them."""
    kernels = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT" if half_precision else ""
    wanted = {KERNEL_LIBRARY: kernels, VECTOR_WIDTH: "512"}
    try:
        jax.jit(lambda x: x, compiler_options=wanted).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return wanted


def fast_jit(**jit_options: Any) -> Callable[[Callable], Callable]:
    """`jax.jit` with the compiler options above; they are asked for at the first call, not at import."""

    @functools.cache
    def compiled(function: Callable, half_precision: bool) -> Callable:
        return jax.jit(function, compiler_options=compiler_options(half_precision), **jit_options)

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            half_precision = any(isinstance(each, Algorithm) and each.half_precision for each in arguments)
            return compiled(function, half_precision)(*arguments)

        return call

    return decorate


def over_seeds(function: Callable, *trees: Any) -> Any:
    """Apply a function to every seed along the first axis; a single one runs bare, faster than a batch of one."""
    if len(jax.tree.leaves(trees)[0]) == 1:
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], trees)))
    return jax.vmap(function)(*trees)


def seed_keys(seeds: tuple[int, ...]) -> Array:
    """One key for each seed; all randomness of a run follows from it and the number of the update."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


@fast_jit(static_argnames="spec")
def init_seeds(algorithm: Algorithm, keys: Array, spec: Spec) -> Any:
    """The state of every seed before its first update, stacked along a first axis.

    Compiled, so that networks that start equal get memory of their own and can be donated.
    """
    return over_seeds(lambda key: algorithm.init(jax.random.fold_in(key, 0), spec), keys)


@fast_jit()
def zero_totals(algorithm: Algorithm, states: Any, dataset: Dataset, keys: Array) -> Metrics:
    """The sums [seed] that `train_chunk` adds its metrics to, before any."""

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
    """Run the updates `first_step` to `last_step` of every seed without leaving the device, adding up their metrics.

    The steps are data, not shapes: chunks of any length share one compiled program, and cutting a run into other
    chunks changes no number. With a sharding, the rows of every batch are split over devices.
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
    """`train_chunk` for batches [seed, number, batch, ...] that were drawn before, of which `begin` to `end` are used.

    `first_step` is the step of number 0.
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
def diagnose_seeds(algorithm: Algorithm, states: Any, dataset: Dataset, keys: Array, step: Array) -> Metrics:
    """The algorithm's diagnostics [seed] on one batch of the dataset."""

    def diagnose_one_seed(state: Any, key: Array) -> Metrics:
        batch_key, draw_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, step), 1))
        return algorithm.diagnose(state, dataset.sample(batch_key, algorithm.batch_size), draw_key)

    return over_seeds(diagnose_one_seed, states, keys)
