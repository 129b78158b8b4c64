"""Time one update and one action of every method at the paper's size. Run: python benchmarks/update.py

Updates are compared with the machine's matrix-product rate and with DROL(16).

Everything is timed in turn within one run, so that the ratios hold on a noisy machine.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from one_pass import one_pass_step

from drol.algorithms import ALGORITHMS
from drol.algorithms.base import Algorithm
from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.experiments.bench.timers import (
    PRODUCT_OPERATIONS,
    Timer,
    matmul_timer,
    median_ratio,
    random_dataset,
    stopwatch,
    time_in_turn,
    update_operations,
    update_timer,
)

ACTIONS = 300  # in one timed call; the first ones are slow after other work


class OnePassDROL(DROL):
    """DROL with every candidate and its critics evaluated and differentiated, as the released code does it."""

    def step(self, state, batch, draws):
        return one_pass_step(self, state, batch, draws)


def action_timer(algorithm: Algorithm, dataset: Dataset, actions: int) -> Timer:
    """Seconds of one action with a policy that never changes; `actions` of them are timed together."""
    policy = jax.jit(lambda key: algorithm.init(key, dataset.spec).policy)(jax.random.key(0))
    act = jax.jit(lambda observation, key: algorithm.act(policy, observation, key))
    observation, key = np.zeros(dataset.spec.observation_shape, np.float32), jax.random.key(1)

    def run() -> None:
        for _ in range(actions):
            act(observation, key).block_until_ready()

    return lambda: stopwatch(run) / actions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how often everything is timed")
    parser.add_argument("--updates", type=int, default=6, help="updates in one timed call")
    parser.add_argument("--candidates", type=int, nargs="+", default=[1, 4, 16, 64], help="values of K")
    parser.add_argument("--methods", nargs="*", default=[*ALGORITHMS], help="algorithms to compare with DROL(16)")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()

    dataset = random_dataset()
    drol = {f"DROL({count})": DROL(num_candidates=count) for count in sorted({*arguments.candidates, 16})}
    drol["DROL(16)h"] = DROL(num_candidates=16, routing_precision="bfloat16")
    others = {name.upper(): ALGORITHMS[name]() for name in arguments.methods if name != "drol"}
    timers, operations = {}, {}
    product = matmul_timer()
    for name, algorithm in {**drol, **others}.items():
        timers[name] = update_timer(algorithm, dataset, updates=arguments.updates)
        operations[name] = update_operations(algorithm, dataset)
        timers[f"matmul after {name}"] = product
    timers["one pass"] = update_timer(OnePassDROL(num_candidates=16), dataset, updates=1)
    acting = {"DROL(16)": drol["DROL(16)"], **others}
    timers |= {f"{name} acts": action_timer(algorithm, dataset, ACTIONS) for name, algorithm in acting.items()}

    seconds = time_in_turn(timers, arguments.rounds)
    products = [values for name, values in seconds.items() if name.startswith("matmul")]
    rates = [PRODUCT_OPERATIONS / statistics.mean(each) for each in zip(*products, strict=True)]  # of each round
    rate = statistics.median(rates)
    print(f"{os.cpu_count()} cores, jax {jax.__version__} on {jax.default_backend()}, {arguments.rounds} rounds")
    print(f"single-precision matrix product [4096, 512] x [512, 512]: {rate / 1e9:.0f} GFLOP/s")
    print("DROL(16)h routes in half precision (--routing-precision bfloat16)")
    print("          ms an update    GFLOP   share of bound   over DROL(16)   ms an action   over DROL(16)")
    results: dict[str, Any] = {"matmul_gflops": rate / 1e9}
    for name, count in operations.items():
        each = seconds[name]
        row = {
            "milliseconds": statistics.median(each) * 1e3,
            "gflop": count / 1e9,
            "share_of_bound": statistics.median(count / rate / value for rate, value in zip(rates, each, strict=True)),
            "over_drol_16": median_ratio(seconds[name], seconds["DROL(16)"]),
        }
        line = f"{name:9s} {row['milliseconds']:12.1f} {row['gflop']:8.2f} {row['share_of_bound']:16.0%}"
        line += f" {row['over_drol_16']:15.2f}"
        if name in acting:
            row["action_milliseconds"] = statistics.median(seconds[f"{name} acts"]) * 1e3
            row["action_over_drol_16"] = median_ratio(seconds[f"{name} acts"], seconds["DROL(16) acts"])
            line += f" {row['action_milliseconds']:14.2f} {row['action_over_drol_16']:15.2f}"
        results[name] = row
        print(line)
    ratio = median_ratio(seconds["one pass"], seconds["DROL(16)"])
    results["one_pass_over_two_pass"] = ratio
    print(f"the one-pass formulation takes {ratio:.1f} times as long as DROL(16)")
    if {"DROL(1)", "DROL(64)"} <= operations.keys():
        extra = (results["DROL(64)"]["milliseconds"] - results["DROL(1)"]["milliseconds"]) / 63 / 1e3
        forward = (operations["DROL(64)"] - operations["DROL(1)"]) / 63 / rate
        results["extra_candidate_over_forward_pass"] = extra / forward
        print(f"one more candidate takes {extra / forward:.2f} times a forward pass at the matrix-product rate")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
