"""Time several seeds on a CPU in one program, one after the other, and in threads: python benchmarks/seeds.py

On CPUs, `drol.training.updates` uses the fastest of these. The benchmark times them in turn, so that ratios are fair.
"""

import argparse
import functools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax

from drol.algorithms.base import Algorithm
from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.data.random_dataset import random_dataset
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals
from drol.training.placement import place
from drol.training.updates import Updates
from drol_reproduction.bench.timers import median_ratio, stopwatch, time_in_turn

NETWORKS = {"paper": ({}, 4), "laptop": (DROL.presets["laptop"], 60)}  # hyperparameters, updates in a timed call


class Trained:
    """Several seeds in training."""

    def __init__(self, algorithm: Algorithm, dataset: Dataset, seeds: tuple[int, ...], updates: int):
        self.algorithm, self.dataset, self.keys, self.updates = algorithm, dataset, seed_keys(seeds), updates
        self.states = init_seeds(algorithm, self.keys, dataset.spec)
        self.totals = zero_totals(algorithm, self.states, dataset, self.keys)

    def train(self) -> None:
        """Train all seeds in one program."""
        arguments = self.algorithm, self.states, self.totals, self.dataset, self.keys, 1, self.updates
        self.states, self.totals = jax.block_until_ready(train_chunk(*arguments))

    def train_as_runs_do(self, updates: Updates) -> None:
        if not isinstance(self.states, list):
            self.states, self.totals = map(updates.placement.put_seeds, (self.states, self.totals))
        self.states, self.totals = jax.block_until_ready(updates.run(self.states, self.totals, 1, self.updates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="(default: 4)")
    parser.add_argument("--threads", type=int, default=2, help="of the threaded form (default: 2)")
    parser.add_argument("--rounds", type=int, default=6, help="(default: 6)")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    parsed = parser.parse_args()
    dataset, seeds = random_dataset(), tuple(range(parsed.seeds))
    pool, results = ThreadPoolExecutor(parsed.threads), {}
    for name, (settings, count) in NETWORKS.items():
        algorithm = DROL(**settings)
        alone, together, in_runs = (Trained(algorithm, dataset, each, count) for each in ((0,), seeds, seeds))
        in_turn, in_threads = ([Trained(algorithm, dataset, (seed,), count) for seed in seeds] for _ in range(2))
        updates = Updates(algorithm, dataset, in_runs.keys, 1, place(len(seeds), algorithm.batch_size))
        work = {
            "one seed alone": alone.train,
            "in one program": together.train,
            "one after the other": lambda each=in_turn: [seed.train() for seed in each],
            "in threads": lambda each=in_threads: list(pool.map(Trained.train, each)),
            "as runs do it": lambda run=in_runs, updates=updates: run.train_as_runs_do(updates),
        }
        seconds = time_in_turn({way: functools.partial(stopwatch, each) for way, each in work.items()}, parsed.rounds)
        results[name] = {}
        for way, each in seconds.items():
            ratio = median_ratio(each, seconds["one seed alone"]) / (1 if way == "one seed alone" else len(seeds))
            results[name][way] = ratio
            print(f"{name:7s} {way:20s} {ratio:.2f} of one seed alone, for each seed")
    if parsed.json:
        parsed.json.write_text(json.dumps({"seeds": parsed.seeds, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
