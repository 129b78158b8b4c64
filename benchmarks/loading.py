"""Time and peak memory of loading a million transitions, drol against the ogbench package, each in its own process.

    python benchmarks/loading.py                               a generated file of antmaze-large
    python benchmarks/loading.py --file antmaze-large-navigate-v0.npz     that file, tiled to a million transitions

Time covers the call, without imports; on a busy machine, compare the processor time. Memory is the peak of the process
minus its memory before the call.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TASK = "antmaze-large-navigate-singletask-task1-v0"
SIZES = {"observations": 29, "actions": 8, "qpos": 15, "qvel": 14}

MEASURE = """
import json, resource, sys, threading, time, warnings
warnings.simplefilter("ignore")
task, path = sys.argv[1:]
{imports}
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
before, peak, done = resident(), [0], threading.Event()
def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], resident())
thread = threading.Thread(target=watch)
thread.start()
start, cpu_start = time.perf_counter(), time.process_time()
result = {call}
seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
done.set()
thread.join()
memory = {{"bytes": peak[0] - before, "process": peak[0]}}
print(json.dumps({{"seconds": seconds, "cpu_seconds": cpu_seconds, **memory, "transitions": {size}}}))
"""
PROGRAMS = {
    "ogbench": MEASURE.format(
        imports="import ogbench, numpy, mujoco, gymnasium.envs.mujoco",
        call="ogbench.make_env_and_datasets(task, dataset_path=path)",
        size="len(result[1]['rewards'])",
    ),
    "drol": MEASURE.format(
        imports=(
            "import jax, ogbench, mujoco, gymnasium.envs.mujoco, drol.tasks.ogbench.loading\n"
            "from pathlib import Path\n"
            "jax.numpy.zeros(1).block_until_ready()"
        ),
        call="drol.tasks.ogbench.SOURCE.load(task, Path(path))",
        size="result.train.size",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default=TASK)
    parser.add_argument("--file", type=Path, help="an OGBench file of the task, which is tiled (default: random walks)")
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--stored", action="store_true", help="do not compress the file, unlike OGBench's")
    parser.add_argument("--repeats", type=int, default=3, help="the best of this many repeats counts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        write(path, arguments.file, arguments.transitions, arguments.stored)
        write(path.with_name("data-val.npz"), arguments.file, arguments.transitions // 10, arguments.stored)
        print(f"{path.stat().st_size / 1e6:,.0f} MB, {'stored' if arguments.stored else 'compressed'}", flush=True)
        best = {}
        for _ in range(arguments.repeats):  # in turn, so that a busy moment affects both
            for name in PROGRAMS:
                row = measure(name, arguments.task, path)
                best[name] = {key: min(value, best.get(name, row)[key]) for key, value in row.items()}
    for name, row in best.items():
        print(
            f"{name:8s} {row['seconds']:6.2f} s  {row['cpu_seconds']:6.2f} s of processors"
            f"  {row['bytes'] / 1e6:7,.0f} MB for the call  {row['process'] / 1e6:7,.0f} MB in all"
            f"  {row['transitions']:,} transitions"
        )
    ratios = [f"{key} {best['drol'][key] / best['ogbench'][key]:.2f}" for key in best["drol"] if key != "transitions"]
    print(f"drol / ogbench: {', '.join(ratios)}")
    return 0


def write(path: Path, source: Path | None, transitions: int, stored: bool) -> None:
    """Write a file with at least this many transitions, in trajectories of a thousand."""
    if source is None:
        rows = 1001
        generator = np.random.default_rng(0)
        steps = {name: generator.normal(size=(rows, size)) for name, size in SIZES.items()}
        arrays = {name: np.cumsum(step, axis=0).astype(np.float32) for name, step in steps.items()}
        arrays["actions"] = np.tanh(steps["actions"]).astype(np.float32)
        arrays["terminals"] = np.arange(rows) == rows - 1
    else:
        with np.load(source, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file}
    count = -(-transitions // int((~arrays["terminals"].astype(bool)).sum()))
    arrays = {name: np.tile(array, (count,) + (1,) * (array.ndim - 1)) for name, array in arrays.items()}
    (np.savez if stored else np.savez_compressed)(path, **arrays)


def measure(name: str, task: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-c", PROGRAMS[name], task, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"{name} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


if __name__ == "__main__":
    raise SystemExit(main())
