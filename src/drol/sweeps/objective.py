"""The metric by which a sweep compares runs, read from the rows of the runs."""

import functools
from collections.abc import Iterable
from pathlib import Path

import jax
import numpy as np

from drol.algorithms import find_algorithm
from drol.data.random_dataset import random_dataset
from drol.errors import InputError, unknown_name
from drol.runs.directory import RunDirectory
from drol.sweeps.sweep import Sweep
from drol.tasks import find_source

PLAYED = ("score", "mean_return", "mean_length")  # metrics of evaluations by episodes
JUDGED = tuple(
    f"offline/{name}"  # metrics of evaluations by held-out data
    for name in ("single_sample_error", "routed_bc_loss", "support_distance", "support_ratio", "outside_support")
)


def check_metric(sweep: Sweep) -> None:
    """Raise `InputError` if a run of the sweep would not have the metric."""
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
    """Return the names of the metrics that a method logs, including those of validation data, without any training."""
    algorithm, dataset, key = find_algorithm(method).from_dict({}), random_dataset(8), jax.random.key(0)

    def shapes(key: jax.Array) -> tuple:
        state, batch = algorithm.init(key, dataset.spec), dataset.sample(key, algorithm.batch_size)
        return algorithm.update(state, batch, key)[1], algorithm.diagnose(state, batch, key)

    metrics, diagnostics = jax.eval_shape(shapes, key)
    found = [f"{prefix}/{name}" for prefix in ("diagnostics", "validation") for name in diagnostics]
    return (*metrics, *found)


def metric_curve(path: Path, metric: str) -> dict[int, dict[int, float]]:
    """Return a metric of a run by step and seed: {step: {seed: value}}."""
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
    """Return a metric of a run at a step, averaged over its seeds; None if there is no value."""
    values = list(metric_curve(path, metric).get(step, {}).values())
    return float(np.mean(values)) if values else None


def success_counts(path: Path, metric: str) -> dict[int, tuple[int, int]]:
    """Return the successes and the episodes of a run at each step, summed over its seeds.

    The result is empty if the metric is not the percentage of successful episodes.
    """
    found: dict[int, tuple[int, int]] = {}
    for row in RunDirectory(path).read_evaluations() if metric == "score" else ():
        if not row.episodes or row.score is None or not np.isclose(row.score, 100 * row.successes / len(row.episodes)):
            return {}
        successes, episodes = found.get(row.step, (0, 0))
        found[row.step] = successes + row.successes, episodes + len(row.episodes)
    return found


def pooled_counts(counts: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return the sums of the successes and episodes of several runs; None if a run has no counts."""
    known = list(counts)
    if not known or any(each is None for each in known):
        return None
    return sum(each[0] for each in known if each), sum(each[1] for each in known if each)
