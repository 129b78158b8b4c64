"""Time collecting with one process and with two. Run: python benchmarks/collecting.py

One and two take turns, and so does a yardstick that only counts: on a busy machine two processes of anything are not
twice one, and the yardstick says how much they can be. The start of the processes is part of the time.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

from drol.tasks.ogbench.collecting.collect import collect


def collecting_rate(name: str, episodes: int, processes: int) -> float:
    """Return transitions a second, of OGBench's collection."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        written = collect(name, Path(folder) / "data.npz", episodes=episodes, processes=processes)
        return sum(written.values()) / (time.perf_counter() - start)


def count(number: int) -> int:
    total = 0
    for each in range(number):
        total += each * each
    return total


def counting_rate(processes: int, number: int = 20_000_000) -> float:
    """Return additions a second."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(count, [1] * processes)  # the processes are up
        start = time.perf_counter()
        pool.map(count, [number] * processes, chunksize=1)
        return processes * number / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="cube-single-play-v0")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parsed = parser.parse_args()
    ratios, yardsticks = [], []
    for _ in range(parsed.repeats):
        counted = [counting_rate(processes) for processes in (1, 2)]
        collected = [collecting_rate(parsed.name, parsed.episodes, processes) for processes in (1, 2)]
        ratios.append(collected[1] / collected[0])
        yardsticks.append(counted[1] / counted[0])
        print(
            f"{parsed.name}: {collected[0]:,.0f} transitions/s by one process, {collected[1]:,.0f} by two: "
            f"ratio {ratios[-1]:.2f} where counting has {yardsticks[-1]:.2f}",
            flush=True,
        )
    print(f"median ratio {statistics.median(ratios):.2f} where counting has {statistics.median(yardsticks):.2f}")


if __name__ == "__main__":
    main()
