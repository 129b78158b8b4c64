"""Estimate the cost of a plan: updates, core-hours of this machine, GPU-hours."""

import functools
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from drol.algorithms import Algorithm, known_algorithms
from drol.data.random_dataset import random_dataset
from drol.jobs.job import read_timings
from drol.machine import available_cores
from drol.planning.planned_run import PlannedRun
from drol.progress import Report
from drol.tasks import find_source
from drol_reproduction.bench.operations import update_operations
from drol_reproduction.bench.timers import PRODUCT_OPERATIONS, matmul_timer
from drol_reproduction.experiments import DEFAULT_K
from drol_reproduction.plan import Plan
from drol_reproduction.published.times import TRAINING_STEP

REACHED = 0.65  # rate of the paper's updates, as a share of a large matrix product's rate; see results/bench.json
GPU_WORDS = (
    "GPU-hours are an estimate: the times of one update in the paper's figure 3, on hardware that it does not name, "
    "for one seed after another and without evaluations; methods that it does not show are given the time of FQL, K "
    "above 16 that of 16"
)


@dataclass(frozen=True)
class Cost:
    """The cost of the missing runs."""

    updates: int  # total over all seeds
    core_hours: float
    gpu_hours: float
    how: str  # the source of the hours


def remaining_cost(plan: Plan, report: Report | None = None) -> Cost:
    """Return the cost of the unfinished runs of a plan; `report` receives the number of runs counted so far.

    Core-hours are estimated from the training times of finished runs of the same scale, evaluations included, in
    proportion to the operations of their updates. Without finished runs, a matrix product is timed instead.
    """
    left = [(run, len(run.seeds) * (status.steps - status.step)) for run, status in plan.statuses() if not status.done]
    rates = measured_rates(plan.root, plan.scale)
    operations = {}
    for number, (run, _) in enumerate(left):
        if report:
            report(number, len(left), f"operations of an update of {run.label} on {run.task}")
        operations[run.name] = operations_of(run)
    if report:
        report(len(left), len(left), "done")
    if rates:
        how = f"core-hours from {sum(map(len, rates.values()))} finished runs here, by the operations of their updates"
        typical = statistics.median(rate for each in rates.values() for rate in each)
    else:
        typical = REACHED * PRODUCT_OPERATIONS / min(timed_product() for _ in range(3))
        how = (
            f"core-hours at {typical / 1e9:.0f} GFLOP/s, {REACHED:.0%} of a matrix product timed now on all cores, "
            "without evaluations"
        )
    seconds = sum(
        operations[run.name] * updates / statistics.median(rates.get(run.method, [typical])) for run, updates in left
    )
    how += "; " + GPU_WORDS
    cores = 1 if rates else available_cores()
    return Cost(sum(updates for _, updates in left), cores * seconds / 3600, gpu_hours(left), how)


def operations_of(run: PlannedRun) -> int:
    return operations(run.config.algorithm, *sizes(run.task))


@functools.cache
def operations(algorithm: Algorithm, observation_size: int, action_size: int) -> int:
    return update_operations(algorithm, random_dataset(8, observation_size, action_size))


@functools.cache
def sizes(task: str) -> tuple[int, int]:
    """Return the sizes of the observation and the action of a benchmark's task."""
    entry = next(entry for entry in find_source(task).datasets() if task in entry.tasks)
    return int(entry.observation), entry.action or 1


def measured_rates(root: Path, scale: str) -> dict[str, list[float]]:
    """Return the operations per second of the finished runs of a scale, for each method."""
    rates: dict[str, list[float]] = defaultdict(list)
    for timing in read_timings(root):
        known = timing.method in known_algorithms()  # a method that a sweep loaded with `--import` is unknown
        if timing.scale == scale and known and not timing.failed and timing.seconds > 0:  # 0: no time reported
            changes = {} if timing.candidates is None else {"num_candidates": timing.candidates}
            run = PlannedRun(scale, timing.task, timing.method, (0,), changes)
            rates[timing.method].append(operations_of(run) * timing.updates * timing.seeds / timing.seconds)
    return dict(rates)


def gpu_hours(updates: Iterable[tuple[PlannedRun, int]]) -> float:
    """Return the GPU-hours of the updates of runs, from the published times of one update."""
    return sum(count * gpu_milliseconds(run) for run, count in updates) / 3.6e6


def gpu_milliseconds(run: PlannedRun) -> float:
    """Return the published time of an update, or the nearest one in the figure."""
    candidates = run.changes.get("num_candidates", DEFAULT_K)
    listed = max(k for k in (1, 4, 8, 16) if k <= candidates)
    return TRAINING_STEP.get(f"drol K={listed}" if run.method == "drol" else run.method, TRAINING_STEP["fql"])


def timed_product() -> float:
    return product_timer()()


@functools.cache
def product_timer():
    return matmul_timer()
