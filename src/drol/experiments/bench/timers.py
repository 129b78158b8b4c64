"""How fast every method is on this machine: updates alone and with several seeds, their bound, actions and latency.

Everything is timed in turn, round after round in one process, so that ratios hold on a machine that does other work.
"""

import functools
import importlib
import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms.base import Algorithm
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.policy import Policy, Standardisation
from drol.training.compiled import compiler_options, init_seeds, seed_keys, zero_totals
from drol.training.placement import place
from drol.training.updates import Updates
from drol.types import Spec

OBSERVATION_SIZE, ACTION_SIZE = 29, 8  # those of antmaze
PRODUCT_ROWS, PRODUCT_WIDTH = 4096, 512
PRODUCT_OPERATIONS = 2 * PRODUCT_ROWS * PRODUCT_WIDTH**2
TIMED_SECONDS = 0.3  # how long one timed call should take, so that starting it does not count
CALLS = 200  # single actions in a round, after some that are slow because other work came before
WARM_UP_CALLS = 20
BATCHES = (1, 64, 1024)

Timer = Callable[[], float]  # works, and returns the seconds that one update, product or call took
Say = Callable[[str, int, int], None]  # what is measured now, and how many of how many equal parts are done


def random_dataset(
    rows: int = 100_001, observation_size: int = OBSERVATION_SIZE, action_size: int = ACTION_SIZE
) -> Dataset:
    """One long trajectory of noise, made in single precision so that nothing takes more memory than the data."""
    generator = np.random.default_rng(0)
    action = generator.random((rows, action_size), np.float32)
    action *= 2
    action -= 1
    return Dataset.from_rows(
        observation=generator.standard_normal((rows, observation_size), np.float32),
        action=action,
        reward=np.full(rows, -1, np.float32),
        continues=np.ones(rows, np.float32),
        last=np.arange(rows) == rows - 1,
    )


def matmul_operations(function: Callable, *arguments: Any) -> int:
    """Floating-point operations of all matrix products in a traced function."""

    def count(jaxpr) -> int:
        total = 0
        for equation in jaxpr.eqns:
            if equation.primitive.name == "dot_general":
                (contracted, _), _ = equation.params["dimension_numbers"]
                left = equation.invars[0].aval.shape
                total += 2 * equation.outvars[0].aval.size * int(np.prod([left[axis] for axis in contracted]))
            repeats = equation.params.get("length", 1)  # of a scan
            inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
            total += repeats * sum(count(each) for each in inner if hasattr(each, "eqns"))
            total += max((count(branch.jaxpr) for branch in equation.params.get("branches", ())), default=0)
        return total

    return count(jax.make_jaxpr(function)(*arguments).jaxpr)


def update_operations(algorithm: Algorithm, dataset: Dataset) -> int:
    """Floating-point operations of the matrix products of one update."""
    key = jax.random.key(0)
    state = jax.eval_shape(lambda key: algorithm.init(key, dataset.spec), key)
    batch = jax.eval_shape(lambda key: dataset.sample(key, algorithm.batch_size), key)
    return matmul_operations(algorithm.update, state, batch, key)


def repeats_within(seconds_of_one: float) -> int:
    return max(1, min(1000, round(TIMED_SECONDS / seconds_of_one)))


def stopwatch(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def call_timer(call: Callable[[], Any]) -> Timer:
    """Seconds of one call; the first compiles, the second says how many of them are timed together."""
    planned: list[int] = []

    def run() -> float:
        if not planned:
            call()
            planned.append(repeats_within(stopwatch(call)))
        return stopwatch(lambda: [call() for _ in range(planned[0])]) / planned[0]

    return run


def matmul_timer() -> Timer:
    """Seconds of the product [4096, 512] x [512, 512], compiled as updates are."""
    left = jnp.full((PRODUCT_ROWS, PRODUCT_WIDTH), 0.1)
    right = jnp.full((PRODUCT_WIDTH, PRODUCT_WIDTH), 1 / PRODUCT_WIDTH)

    def multiply(left, right, repeats):
        return jax.lax.fori_loop(0, repeats, lambda _, x: x @ right, left)

    product = jax.jit(multiply, compiler_options=compiler_options())
    product(left, right, 1).block_until_ready()
    repeats = repeats_within(stopwatch(lambda: product(left, right, 4).block_until_ready()) / 4)
    return lambda: stopwatch(lambda: product(left, right, repeats).block_until_ready()) / repeats


def update_timer(
    algorithm: Algorithm, dataset: Dataset, seeds: int = 1, updates: int | None = None, keep_states: bool = True
) -> Timer:
    """Seconds of one update of all seeds at once, trained as a run trains them; `updates` of them are timed together.

    States that are not kept are made anew before each call: those of many seeds of all methods fill a memory.
    """
    keys = seed_keys(tuple(range(seeds)))
    placement = place(seeds, algorithm.batch_size, devices=1)
    trained = Updates(algorithm, dataset, keys, 1, placement)
    kept: list[Any] = []
    planned = [updates] if updates else []

    def run() -> float:
        if not kept:
            states = init_seeds(algorithm, keys, dataset.spec)
            kept[:] = map(placement.put_seeds, (states, zero_totals(algorithm, states, dataset, keys)))
            jax.block_until_ready(kept)
        if not planned:  # the first call compiles, the second says how long an update takes
            train(1)
            planned.append(repeats_within(train(1)))
        seconds = train(planned[0]) / planned[0]
        if not keep_states:
            kept.clear()
        return seconds

    def train(count: int) -> float:
        start = time.perf_counter()
        states, totals = kept
        kept[:] = jax.block_until_ready(trained.run(states, totals, 1, count))
        return time.perf_counter() - start

    return run


def make_policy(algorithm: Algorithm, spec: Spec) -> Policy:
    """A policy before any update."""
    networks = jax.jit(lambda key: algorithm.init(key, spec).policy)(jax.random.key(0))
    return Policy(algorithm, networks, Standardisation.identity(spec))


def latency_timer(act: Callable[[int], Any], every_call: list[float]) -> Timer:
    """Mean seconds of one call; the seconds of each of them are added to `every_call`."""

    def run() -> float:
        for number in range(WARM_UP_CALLS):
            act(number)
        seconds = [stopwatch(functools.partial(act, number)) for number in range(CALLS)]
        every_call.extend(seconds)
        return statistics.mean(seconds)

    return run


def single_actions(policy: Policy, observation_size: int) -> Callable[[int], Any]:
    """One action for one observation, as a control loop asks for it: NumPy in, NumPy out, a new key each time."""
    observation = np.zeros(observation_size, np.float32)
    keys = list(jax.random.split(jax.random.key(1), CALLS))
    return lambda number: np.asarray(policy.act(observation, keys[number]))


def batch_timer(policy: Policy, observation_size: int, rows: int) -> Timer:
    """Seconds of one call that acts on a batch."""
    observations = np.zeros((rows, observation_size), np.float32)
    keys = jax.random.split(jax.random.key(1), rows)
    return call_timer(lambda: policy.act(observations, keys).block_until_ready())


def numpy_forward(hidden_sizes: Sequence[int], in_size: int, out_size: int) -> Callable[[int], Any]:
    """The bare network in NumPy, the least that one action takes without any library: layers, tanh-GELU, clip."""
    generator = np.random.default_rng(0)
    sizes = (in_size, *hidden_sizes, out_size)
    shapes = itertools.pairwise(sizes)
    kernels = [generator.standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[0])) for shape in shapes]
    biases = [np.zeros(size, np.float32) for size in sizes[1:]]
    observation = np.zeros(in_size, np.float32)
    root = np.float32(math.sqrt(2 / math.pi))

    def act(_: int) -> np.ndarray:
        x = observation
        for kernel, bias in zip(kernels[:-1], biases[:-1], strict=True):
            x = x @ kernel + bias
            x = np.float32(0.5) * x * (1 + np.tanh(root * (x + np.float32(0.044715) * x * x * x)))
        return np.clip(x @ kernels[-1] + biases[-1], -1, 1)

    return act


def time_in_turn(timers: Mapping[str, Timer], rounds: int, say: Say | None = None) -> dict[str, list[float]]:
    """What each timer returned in every round; all of them run once in a round, so a round's ratios are fair.

    A first round is not counted: it compiles.
    """
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for number, (name, timer) in enumerate(timers.items()):
        if say:
            say(f"compiling {number + 1} of {len(timers)}, {name}", 0, rounds * len(timers))
        timer()
    for number in range(rounds):
        for done, (name, timer) in enumerate(timers.items()):
            if say:
                say(f"round {number + 1} of {rounds}, {name}", number * len(timers) + done, rounds * len(timers))
            seconds[name].append(timer())
    return seconds


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median over rounds of how many times as long the first took."""
    return statistics.median(one / two for one, two in zip(first, second, strict=True))


class Against(NamedTuple):
    """The update of somebody else's code."""

    place: str  # module:function
    name: str
    update: Callable[[], Any]  # makes one update and waits for it


def load_against(place: str) -> Against:
    """Call the function at `module:function`, which takes nothing and returns the update, or (update, name)."""
    module_name, separator, function_name = place.partition(":")
    if not (module_name and separator and function_name):
        raise InputError(f"--against is {place!r}; it must be module:function, as in their_code:make_update")
    if os.getcwd() not in sys.path:  # noqa: PTH109 (entries of sys.path are strings)
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        made = getattr(importlib.import_module(module_name), function_name)()
    except ModuleNotFoundError as error:
        raise InputError(f"--against {place}: there is no module {error.name!r} here or installed") from error
    except AttributeError as error:
        raise InputError(f"--against {place}: {one_line(error)}") from error
    except Exception as error:
        raise InputError(f"--against {place} raised {type(error).__name__}: {one_line(error)}") from error
    update, name = made if isinstance(made, tuple) and len(made) == 2 else (made, place)
    if not callable(update):
        raise InputError(f"--against {place} returned {type(update).__name__}; it must be a callable that updates once")
    return Against(place, str(name), update)


def against_timer(against: Against) -> Timer:
    """Seconds of one of their updates; what it returns is waited for, where jax can wait for it."""

    def once() -> None:
        try:
            jax.block_until_ready(against.update())
        except Exception as error:
            words = f"{type(error).__name__}: {one_line(error)}"
            raise InputError(f"the update of --against {against.place} raised {words}") from error

    return call_timer(once)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
