"""Updates on data that stays on disk against the same updates on data in memory: python benchmarks/mapped.py

Rounds of both take turns, so that a busy machine slows both alike; the ratio of the medians is what counts.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.data.episode_writer import EpisodeWriter
from drol.data.mapped import MappedDataset
from drol.data.store import StoredDataset
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.updates import Updates


def write(root: Path, episodes: int, observation_size: int) -> StoredDataset:
    generator = np.random.default_rng(0)
    with EpisodeWriter("benchmark", root, validation=0) as writer:
        for _ in range(episodes):
            observation = generator.normal(size=(1001, observation_size)).astype(np.float32)
            action = generator.uniform(-1, 1, (1000, 8)).astype(np.float32)
            writer.add(observation, action, np.zeros(1000, np.float32), terminal=False)
    return StoredDataset.open("benchmark", root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000, help="of 1000 transitions (default: 1000)")
    parser.add_argument("--observation", type=int, default=45, help="numbers in an observation (default: 45)")
    parser.add_argument("--hidden", type=int, nargs="+", default=[512] * 4, help="(default: 512 512 512 512)")
    parser.add_argument("--updates", type=int, default=40, help="of a round (default: 40)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    parsed = parser.parse_args()
    algorithm = DROL(num_candidates=16, hidden_sizes=tuple(parsed.hidden))
    keys = seed_keys((0,))
    with tempfile.TemporaryDirectory() as folder:
        stored = write(Path(folder), parsed.episodes, parsed.observation)
        arrays = {name: np.asarray(array) for name, array in stored.arrays("train").items()}
        datasets = {"memory": Dataset.from_rows(**arrays), "disk": MappedDataset.open(stored, "train")}
        mapped = datasets["disk"]
        start = time.perf_counter()
        for step in range(20):
            mapped.sample_chunk(keys, step * 16, 16, algorithm.batch_size)
        print(f"gathering a batch of {algorithm.batch_size}: {(time.perf_counter() - start) / 320 * 1e3:.3f} ms")
        runs = {}
        for name, dataset in datasets.items():
            states = init_seeds(algorithm, keys, mapped.spec)
            updates = Updates(algorithm, dataset, keys, 10**6)
            totals = zero_totals(algorithm, states, updates.in_memory, keys)
            runs[name] = [updates, *jax.block_until_ready(updates.run(states, totals, 1, 2))]
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(parsed.rounds):
            first = 3 + number * parsed.updates
            for name, (updates, states, totals) in runs.items():
                start = time.perf_counter()
                states, totals = updates.run(states, totals, first, first + parsed.updates - 1)
                jax.block_until_ready(totals)
                seconds[name].append((time.perf_counter() - start) / parsed.updates)
                runs[name] = [updates, states, totals]
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        for name, value in medians.items():
            print(f"{name}: {value * 1e3:.2f} ms an update")
        print(f"ratio: {medians['disk'] / medians['memory']:.3f}")
        # The batches are the same bits; the two programs round differently.
        apart = jax.tree.map(lambda one, other: float(abs(one - other).max()), runs["memory"][1], runs["disk"][1])
        print(f"largest difference of a weight: {max(jax.tree.leaves(apart)):.1e}")


if __name__ == "__main__":
    main()
