"""Timers of updates, matrix products and actions.

All timers run in turn, round after round in one process, so that ratios are valid on a machine with other load.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms.base import Algorithm
from drol.compiling import compiler_options
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.networks.mlp import MLP
from drol.policy import Policy
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.placement import place
from drol.training.updates import Updates
from drol.transition import Spec

PRODUCT_ROWS, PRODUCT_WIDTH = 4096, 512
PRODUCT_OPERATIONS = 2 * PRODUCT_ROWS * PRODUCT_WIDTH**2
TIMED_SECONDS = 0.3  # target duration of a timed call, so that its overhead is negligible
CALLS = 200  # single actions in a round, after some slow warm-up calls
WARM_UP_CALLS = 20

Timer = Callable[[], float]  # runs the work, returns the seconds of one update, product or call
Say = Callable[[str], None]  # called before each measurement with its name


def make_policy(algorithm: Algorithm, spec: Spec) -> Policy:
    """Return a policy before any update."""
    networks = jax.jit(lambda key: algorithm.init(key, spec).policy)(jax.random.key(0))
    return Policy(algorithm, networks, Standardisation.identity(spec))


def stopwatch(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def repeats_within(seconds_of_one: float) -> int:
    return max(1, min(1000, round(TIMED_SECONDS / seconds_of_one)))


def call_timer(call: Callable[[], Any]) -> Timer:
    """Return a timer of one call; the first call compiles, the second determines the number of repetitions."""
    planned: list[int] = []

    def run() -> float:
        if not planned:
            call()
            planned.append(repeats_within(stopwatch(call)))
        return stopwatch(lambda: [call() for _ in range(planned[0])]) / planned[0]

    return run


def latency_timer(call: Callable[[], Any], every_call: list[float]) -> Timer:
    """Return a timer of the mean of many calls; it appends the seconds of each call to `every_call`."""

    def run() -> float:
        for _ in range(WARM_UP_CALLS):
            call()
        seconds = [stopwatch(call) for _ in range(CALLS)]
        every_call.extend(seconds)
        return statistics.mean(seconds)

    return run


def matmul_timer() -> Timer:
    """Return a timer of the product [4096, 512] x [512, 512], compiled as updates are."""
    left = jnp.full((PRODUCT_ROWS, PRODUCT_WIDTH), 0.1)
    right = jnp.full((PRODUCT_WIDTH, PRODUCT_WIDTH), 1 / PRODUCT_WIDTH)

    def multiply(left, right, repeats):
        return jax.lax.fori_loop(0, repeats, lambda _, x: x @ right, left)

    product = jax.jit(multiply, compiler_options=compiler_options())
    planned: list[int] = []

    def run() -> float:
        if not planned:
            product(left, right, 1).block_until_ready()
            planned.append(repeats_within(stopwatch(lambda: product(left, right, 4).block_until_ready()) / 4))
        return stopwatch(lambda: product(left, right, planned[0]).block_until_ready()) / planned[0]

    return run


def update_timer(algorithm: Algorithm, dataset: Dataset, seeds: int = 1, keep_states: bool = True) -> Timer:
    """Return a timer of one update of all seeds at once, trained as a run trains them.

    States that are not kept are recreated before each call, because the states of all methods would fill the memory.
    """
    keys = seed_keys(tuple(range(seeds)))
    placement = place(seeds, algorithm.batch_size, devices=1)
    trained = Updates(algorithm, dataset, keys, 1, placement)
    kept: list[Any] = []
    planned: list[int] = []

    def run() -> float:
        if not kept:
            states = init_seeds(algorithm, keys, dataset.spec)
            kept[:] = map(placement.put_seeds, (states, zero_totals(algorithm, states, dataset, keys)))
            jax.block_until_ready(kept)
        if not planned:  # the first call compiles, the second measures an update
            train(1)
            planned.append(repeats_within(stopwatch(lambda: train(1))))
        seconds = stopwatch(lambda: train(planned[0])) / planned[0]
        if not keep_states:
            kept.clear()
        return seconds

    def train(count: int) -> None:
        states, totals = kept
        kept[:] = jax.block_until_ready(trained.run(states, totals, 1, count))

    return run


def numpy_network(network: MLP) -> Callable[[np.ndarray], np.ndarray]:
    """Return a network and the clip of its action in NumPy: a lower bound for the time of an action."""
    *layers, last = [(np.asarray(layer.kernel), np.asarray(layer.bias)) for layer in network.layers]
    root = np.float32(math.sqrt(2 / math.pi))

    def call(x: np.ndarray) -> np.ndarray:
        for kernel, bias in layers:
            x = x @ kernel + bias
            x = np.float32(0.5) * x * (1 + np.tanh(root * (x + np.float32(0.044715) * x * x * x)))  # GELU
        return np.clip(x @ last[0] + last[1], -1, 1)

    return call


def time_in_turn(timers: Mapping[str, Timer], rounds: int, say: Say = lambda _: None) -> dict[str, list[float]]:
    """Return the results of each timer in every round. All timers run once per round, so that ratios are fair.

    The first round is dropped, because it compiles.
    """
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for name, timer in timers.items():
        say(f"compiling, {name}")
        timer()
    for number in range(rounds):
        for name, timer in timers.items():
            say(f"round {number + 1} of {rounds}, {name}")
            seconds[name].append(timer())
    return seconds


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the median over rounds of the ratio of the first to the second."""
    return statistics.median(one / two for one, two in zip(first, second, strict=True))
