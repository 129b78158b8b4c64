"""What all runs of the paper's tables cost, from rates that were measured: docs/scaling.md has what this prints.

    python benchmarks/scaling.py [--out results/scaling.json]

Nothing is trained here. Updates, sizes and evaluations follow from the settings; times from results/bench.json and from
the times of one update that the paper printed.
"""

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path

import jax

from drol.paper.planned import PlannedRun
from drol.paper.reproduce.cost import gpu_hours, operations_of, sizes
from drol.paper.reproduce.plan import make_plan
from drol.types import Spec

RESULTS = Path(__file__).parents[1] / "results"
EPISODE_STEPS = 1000  # of the longest episodes
CLUSTER_CORES = 500
KEPT_CHECKPOINTS = 2


KNOWN: dict[tuple, tuple[int, int, int]] = {}


def needs_of(run: PlannedRun) -> tuple[int, int, int]:
    """Return the operations of an update and the bytes of a checkpoint and of a policy; floats do not change them."""
    algorithm, (observation, action) = run.config.algorithm, sizes(run.task)
    static = tuple((name, str(value)) for name, value in algorithm.to_dict().items() if type(value) is not float)
    key = (type(algorithm), static, observation, action)
    if key not in KNOWN:
        state = jax.eval_shape(lambda key: algorithm.init(key, Spec((observation,), action)), jax.random.key(0))
        trees = (state, state.policy)
        sizes_of = [sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)) for tree in trees]
        KNOWN[key] = operations_of(run), sizes_of[0], sizes_of[1]
    return KNOWN[key]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parsed = parser.parse_args()
    bench = json.loads((RESULTS / "bench.json").read_text())
    per_core = {
        name: 1e9 * each["gflop"] * each["updates_per_second"] / bench["cores"]
        for name, each in bench["methods"].items()
    }
    typical = statistics.median(per_core.values())
    runs = make_plan("full", "paper", seeds_per_run=1).runs
    total = Counter()
    for run in runs:
        config = run.config
        updates = config.total_steps
        evaluations = 1 + updates // config.evaluation_interval
        operations, checkpoint, policy = needs_of(run)
        total["updates"] += updates
        total["core_seconds"] += updates * operations / per_core.get(run.method, typical)
        total["episodes"] += evaluations * config.evaluation_episodes
        total["bytes"] += KEPT_CHECKPOINTS * checkpoint + evaluations * policy
        total["checkpoints_written"] += updates // config.checkpoint_interval
        total["checkpoint_bytes_written"] += updates // config.checkpoint_interval * checkpoint
    drol = bench["methods"]["drol"]
    hours = total["core_seconds"] / 3600
    steps_per_second = drol["evaluation_steps_per_second"]["1"]
    on_gpu = gpu_hours((run, run.steps) for run in runs)
    result = {
        "runs_of_one_seed": len(runs),
        "updates": total["updates"],
        "gigaflops_per_core": {name: rate / 1e9 for name, rate in per_core.items()},
        "core_hours_of_updates": hours,
        "days_on_one_machine": {str(cores): hours / cores / 24 for cores in (2, 64)},
        f"days_on_{CLUSTER_CORES}_cores": hours / CLUSTER_CORES / 24,
        "gpu_hours_published_times": on_gpu,
        "days_on_one_gpu": on_gpu / 24,
        "episodes": total["episodes"],
        "core_hours_of_evaluations_at_most": total["episodes"] * EPISODE_STEPS / steps_per_second / 3600,
        "terabytes_kept": total["bytes"] / 1e12,
        "checkpoints_written": total["checkpoints_written"],
        "terabytes_written": total["checkpoint_bytes_written"] / 1e12,
        "core_hours_of_compiling_each_run": len(runs) * drol["compile_seconds"] / 3600,
        "core_hours_with_a_shared_cache": len(runs) * drol["compile_seconds_from_cache"] / 3600,
        "gigabytes_of_memory_of_a_run": drol["peak_memory_bytes"] / 1e9,
    }
    print(json.dumps(result, indent=1))
    if parsed.out:
        parsed.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
