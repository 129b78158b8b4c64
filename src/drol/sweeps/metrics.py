"""What a sweep compares: a number of the rows that a run writes, by its name."""

import functools
from pathlib import Path

import jax
import numpy as np

from drol.algorithms import find_algorithm
from drol.errors import InputError, unknown_name
from drol.experiments.bench.timers import random_dataset
from drol.runs.directory import RunDirectory
from drol.sweeps.sweep import Sweep
from drol.tasks import find_source

PLAYED = ("score", "mean_return", "mean_length")  # of evaluations by episodes
JUDGED = tuple(
    f"offline/{name}"  # of evaluations by held-out data
    for name in ("single_sample_error", "routed_bc_loss", "support_distance", "support_ratio", "outside_support")
)


def check_metric(sweep: Sweep) -> None:
    """Refuse a metric that a run of the sweep would not have."""
    metric = sweep.search.metric
    for method in sweep.methods:
        known = (*PLAYED, *JUDGED) if metric in (*PLAYED, *JUDGED) else (*PLAYED, *JUDGED, *logged_names(method))
        if metric not in known:
            raise unknown_name("search.metric", metric, known, f"{method} has {', '.join(known)}")
    for task in sweep.task_names if metric in (*PLAYED, *JUDGED) else ():
        played = find_source(task).make_environment(task) is not None
        if (metric in PLAYED) != played:
            allowed = PLAYED if played else JUDGED
            raise InputError(
                f"search.metric is {metric}, which runs on {task} do not have; they have {', '.join(allowed)}"
            )


@functools.cache
def logged_names(method: str) -> tuple[str, ...]:
    """Return the numbers that a method logs, and those of validation data; nothing is computed."""
    algorithm, dataset, key = find_algorithm(method).from_dict({}), random_dataset(8), jax.random.key(0)

    def shapes(key: jax.Array) -> tuple:
        state, batch = algorithm.init(key, dataset.spec), dataset.sample(key, algorithm.batch_size)
        return algorithm.update(state, batch, key)[1], algorithm.diagnose(state, batch, key)

    metrics, diagnostics = jax.eval_shape(shapes, key)
    found = [f"{prefix}/{name}" for prefix in ("diagnostics", "validation") for name in diagnostics]
    return (*metrics, *found)


def metric_curve(path: Path, metric: str) -> dict[int, dict[int, float]]:
    """Return a metric of a run after each step, for each seed: {step: {seed: value}}."""
    directory = RunDirectory(path)
    from_metrics = metric not in PLAYED and not metric.startswith(("offline/", "validation/"))
    rows = directory.read_metrics() if from_metrics else directory.read_evaluations()
    found: dict[int, dict[int, float]] = {}
    for row in rows:
        value = row.columns().get(metric)
        if value is not None:
            found.setdefault(row.step, {})[row.seed] = float(value)
    return found


def metric_at(path: Path, metric: str, step: int) -> float | None:
    """Return the mean of a metric over the seeds of a run after a step; None if it has none there."""
    values = list(metric_curve(path, metric).get(step, {}).values())
    return float(np.mean(values)) if values else None
