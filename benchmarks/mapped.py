"""Updates on data that stays on disk against the same updates on data in memory: python benchmarks/mapped.py

Rounds of both take turns, so that a busy machine slows both alike; the ratio of the medians is what counts. With --cold
the system forgets what it holds of the files every second, so that almost every row comes from the disk, as with data
that is far larger than memory; the bytes that were read from the disk are printed. Each round on disk starts to read
when it begins: what is read ahead during the other rounds would not be counted.
"""

import argparse
import contextlib
import mmap
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.data.on_disk import OnDiskDataset
from drol.data.store.episode_writer import EpisodeWriter
from drol.data.store.stored import StoredDataset
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.updates import DIAGNOSED, Updates


def write(root: Path, episodes: int, observation_size: int) -> StoredDataset:
    generator = np.random.default_rng(0)
    with EpisodeWriter("benchmark", root, validation=0) as writer:
        for _ in range(episodes):
            observation = generator.normal(size=(1001, observation_size)).astype(np.float32)
            action = generator.uniform(-1, 1, (1000, 8)).astype(np.float32)
            writer.add(observation, action, np.zeros(1000, np.float32), terminal=False)
    return StoredDataset.open("benchmark", root)


class Forgetting:
    """While it is on, the system keeps dropping what it holds of a dataset's files."""

    def __init__(self, stored: StoredDataset, mapped: OnDiskDataset):
        self.paths = sorted((stored.folder / "train").glob("*.npy"))
        self.mappings = [array.base for array in mapped.stored.values() if isinstance(array.base, mmap.mmap)]
        assert self.mappings

    def forget(self) -> None:
        for mapping in self.mappings:  # a page that is mapped is not dropped
            mapping.madvise(mmap.MADV_DONTNEED)
        for path in self.paths:
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def __enter__(self) -> None:
        self.forget()
        self.before, self.over = bytes_from_disk(), threading.Event()
        self.thread = threading.Thread(target=self.keep_forgetting)
        self.thread.start()

    def keep_forgetting(self) -> None:
        while not self.over.wait(1):
            self.forget()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        print(f"  {(bytes_from_disk() - self.before) / 1e6:.1f} MB from the disk", flush=True)


def bytes_from_disk() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["read_bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000, help="of 1000 transitions (default: 1000)")
    parser.add_argument("--observation", type=int, default=45, help="numbers in an observation (default: 45)")
    parser.add_argument("--hidden", type=int, nargs="+", default=[512] * 4, help="(default: 512 512 512 512)")
    parser.add_argument("--updates", type=int, default=256, help="of a round (default: 256)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--cold", action="store_true", help="nothing of the files may stay in memory")
    parser.add_argument("--folder", type=Path, help="on the disk to measure (default: a temporary one)")
    parsed = parser.parse_args()
    algorithm = DROL(num_candidates=16, hidden_sizes=tuple(parsed.hidden))
    keys = seed_keys((0,))
    with tempfile.TemporaryDirectory(dir=parsed.folder) as folder:
        stored = write(Path(folder), parsed.episodes, parsed.observation)
        arrays: dict[str, Any] = {name: np.array(array) for name, array in stored.arrays("train").items()}
        datasets = {"memory": Dataset.from_rows(**arrays), "disk": OnDiskDataset.open(stored, "train")}
        mapped = datasets["disk"]
        on_disk = Forgetting(stored, mapped) if parsed.cold else contextlib.nullcontext()
        with on_disk:
            start = time.perf_counter()
            for step in range(8):
                mapped.sample_chunk(keys, step * 16, 16, algorithm.batch_size)
            print(f"gathering a batch of {algorithm.batch_size}: {(time.perf_counter() - start) / 128 * 1e3:.2f} ms")
        runs, seconds = {}, {name: [] for name in datasets}
        for name, dataset in datasets.items():
            states = init_seeds(algorithm, keys, mapped.spec)
            totals = zero_totals(algorithm, states, dataset.some(DIAGNOSED), keys)
            runs[name] = Updates(algorithm, dataset, keys, 2).run(states, totals, 1, 2)
            jax.block_until_ready(runs[name])
        for number in range(parsed.rounds):
            first = 3 + number * parsed.updates
            last = first + parsed.updates - 1
            for name, dataset in datasets.items():
                with on_disk if name == "disk" else contextlib.nullcontext():
                    start = time.perf_counter()
                    states, totals = runs[name]
                    runs[name] = Updates(algorithm, dataset, keys, last).run(states, totals, first, last)
                    jax.block_until_ready(runs[name])
                    seconds[name].append((time.perf_counter() - start) / parsed.updates)
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        for name, value in medians.items():
            print(f"{name}: {value * 1e3:.2f} ms an update")
        print(f"ratio: {medians['disk'] / medians['memory']:.3f}")
        # The batches are the same bits; the two programs round differently.
        apart = jax.tree.map(lambda one, other: float(abs(one - other).max()), runs["memory"][0], runs["disk"][0])
        print(f"largest difference of a weight: {max(jax.tree.leaves(apart)):.1e}")


if __name__ == "__main__":
    main()
