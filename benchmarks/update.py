"""Time one update at the paper's size against the machine's matrix-product rate. Run: python benchmarks/update.py

Everything is timed in turn within one run, so that the ratios hold on a noisy machine.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from one_pass import one_pass_step

from drol.algorithms.base import Algorithm
from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals


class OnePassDROL(DROL):
    """DROL with every candidate and its critics evaluated and differentiated, as the released code does it."""

    def step(self, state, batch, draws):
        return one_pass_step(self, state, batch, draws)


def random_dataset(rows: int = 100_001, observation_size: int = 29, action_size: int = 8) -> Dataset:
    generator = np.random.default_rng(0)
    return Dataset.from_rows(
        observation=generator.normal(size=(rows, observation_size)).astype(np.float32),
        action=generator.uniform(-1, 1, (rows, action_size)).astype(np.float32),
        reward=-np.ones(rows, np.float32),
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
            for value in equation.params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    total += count(inner)
        return total

    return count(jax.make_jaxpr(function)(*arguments).jaxpr)


def update_timer(algorithm: Algorithm, dataset: Dataset, updates: int) -> tuple[Callable[[], None], int]:
    """A function that runs `updates` updates as training does, and the operations of one of them."""
    keys = seed_keys((0,))
    states = init_seeds(algorithm, keys, dataset.spec)
    carry = [states, zero_totals(algorithm, states, dataset, keys)]

    def run() -> None:
        carry[:] = jax.block_until_ready(train_chunk(algorithm, *carry, dataset, keys, 1, updates))

    one_state = jax.tree.map(lambda leaf: leaf[0], states)
    batch = dataset.sample(keys[0], algorithm.batch_size)
    return run, matmul_operations(algorithm.update, one_state, batch, keys[0])


def time_in_turn(timers: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median seconds of each function, all of them run once in every round."""
    seconds = {name: [] for name in timers}
    for run in timers.values():
        run()
    for _ in range(rounds):
        for name, run in timers.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how often everything is timed")
    parser.add_argument("--updates", type=int, default=5, help="updates in one timed call")
    parser.add_argument("--candidates", type=int, nargs="+", default=[1, 4, 16, 64], help="values of K")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()

    dataset = random_dataset()
    left, right = jnp.ones((4096, 512)), jnp.ones((512, 512))
    product = jax.jit(jnp.matmul)
    timers = {"matmul": lambda: [product(left, right).block_until_ready() for _ in range(arguments.updates)]}
    operations = {"matmul": 2 * 4096 * 512 * 512}
    for count in arguments.candidates:
        name = f"DROL({count})"
        timers[name], operations[name] = update_timer(DROL(num_candidates=count), dataset, arguments.updates)
    one_pass, _ = update_timer(OnePassDROL(num_candidates=16), dataset, 1)
    timers["one pass, K = 16"] = one_pass

    seconds = time_in_turn(timers, arguments.rounds)
    one_pass_seconds = seconds.pop("one pass, K = 16")
    per_call = {name: value / arguments.updates for name, value in seconds.items()}
    rate = operations["matmul"] / per_call["matmul"]
    print(f"{os.cpu_count()} cores, jax {jax.__version__} on {jax.default_backend()}")
    print(f"single-precision matrix product [4096, 512] x [512, 512]: {rate / 1e9:.0f} GFLOP/s")
    results = {}
    for name in (f"DROL({count})" for count in arguments.candidates):
        bound = operations[name] / rate
        results[name] = {
            "milliseconds": per_call[name] * 1e3,
            "operations": operations[name],
            "bound_milliseconds": bound * 1e3,
            "share_of_bound": bound / per_call[name],
        }
        print(
            f"{name:9s} {per_call[name] * 1e3:7.1f} ms an update, {operations[name] / 1e9:6.2f} GFLOP, "
            f"bound {bound * 1e3:6.1f} ms: {bound / per_call[name]:.0%} of it"
        )
    if 16 in arguments.candidates:
        ratio = one_pass_seconds / per_call["DROL(16)"]
        results["one_pass_ratio"] = ratio
        print(f"one pass, K = 16: {one_pass_seconds * 1e3:.1f} ms, {ratio:.1f} times DROL(16)")
    if {1, 16, 64} <= set(arguments.candidates):
        extra = (per_call["DROL(64)"] - per_call["DROL(1)"]) / 63
        forward = (operations["DROL(64)"] - operations["DROL(1)"]) / 63 / rate
        results["extra_candidate_ratio"] = extra / forward
        print(
            f"one more candidate: {extra * 1e3:.2f} ms, {extra / forward:.2f} times its forward pass at the matmul rate"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps({"matmul_gflops": rate / 1e9, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
