"""Compare runs on data without a simulator: held-out error, share outside the data, offline value.

The comparison has no verdict, because these numbers predict success poorly (measured in docs/offline-evaluation.md).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from drol.errors import InputError
from drol.evaluation.support import DATA_SHARE, LEAVES, hold_out, measure_states, support_warning
from drol.results.choose import evaluate_alike
from drol.results.collect import find_runs, stand_in
from drol.results.groups import make_labels
from drol.results.statistical_tests import Interval, cluster_bootstrap_interval, mean_interval
from drol.runs.run import Run, open_run

CAVEATS = (
    "error is the squared distance to held-out actions per dimension; a lower error does not mean a better policy",
    f"outside is the share of actions outside the support of the data ({DATA_SHARE:.0%} for held-out actions); "
    f"policies above {LEAVES * DATA_SHARE:.0%} may fail badly",
    "value is a fitted-Q estimate from data; in the study of docs/offline-evaluation.md it did not order runs "
    "reliably, so there is no verdict",
    "intervals are 95%, over held-out trajectories and, with two seeds or more, over seeds; they do not cover the "
    "environment. `drol choose --trials` finds the best policy with few real trials",
)


@dataclass(frozen=True)
class Estimate:
    """A mean over the seeds of a group, and its 95% interval; None for one seed and one held-out trajectory."""

    mean: float
    interval: Interval | None


@dataclass(frozen=True)
class OfflineGroup:
    """The newest policies of the runs of one method with one choice of settings.

    Attributes:
        label: The name of the method, with the settings that distinguish its groups.
        seeds: The number of policies.
        steps: The numbers of updates of their training.
        error: The squared distance of one drawn action to the held-out action.
        outside: The share of actions outside the support of the data.
        value: The value by fitted-Q evaluation; None if it is not finite.
        warning: A warning with advice if the policies leave the support, else None.
    """

    label: str
    seeds: int
    steps: tuple[int, ...]
    error: Estimate
    outside: Estimate
    value: Estimate | None
    warning: str | None


@dataclass(frozen=True)
class OfflineComparison:
    """Groups of runs on one task without a simulator.

    Attributes:
        task: The name of the task.
        groups: The groups, in the order in which runs were given.
        discount: The discount of all values.
        notes: Explanations and limits, one line each.
    """

    task: str
    groups: list[OfflineGroup]
    discount: float
    notes: tuple[str, ...] = CAVEATS


def has_only_data(run: Run) -> bool:
    """Return whether the evaluations during a run's training used held-out data."""
    rows = run.evaluations
    return any(row.offline is not None for row in rows) and all(row.score is None for row in rows)


def compare_offline(
    paths: Path | str | Iterable[Path | str], on_evaluation: Callable[[str], None] | None = None
) -> OfflineComparison:
    """Compare runs on data without a simulator: held-out error, share outside the data and offline value.

    docs/offline-evaluation.md explains the metrics and reports how well they predict scores.

    Args:
        paths: Runs of one task, or folders with runs; or one of these.
        on_evaluation: Called with a message before a policy without an offline value is evaluated, which takes about
            a minute.

    Returns:
        The comparison. Its numbers have intervals and no verdict.

    Example:
        >>> import drol
        >>> drol.compare_offline(["runs/a", "runs/b"]).groups[0].outside.mean  # doctest: +SKIP
        0.06
    """
    given = [paths] if isinstance(paths, Path | str) else paths
    runs = [open_run(folder) for path in given for folder in find_runs(Path(path))]
    tasks = {run.config.task for run in runs}
    if len(tasks) > 1:
        raise InputError(f"the runs have {len(tasks)} tasks ({', '.join(sorted(tasks))}); give runs of one task")
    untrained = [run for run in runs if not run.steps]
    if untrained:
        raise InputError(f"{untrained[0].path}: no saved policy; train the run first")
    evaluate_alike(runs, {run: {run.steps[-1]} for run in runs}, on_evaluation)
    stands = [stand_in(run) for run in runs]
    labels = make_labels(list({each.group: each for each in stands}.values()))
    grouped: dict[str, list[Run]] = {}
    for run, stand in zip(runs, stands, strict=True):
        grouped.setdefault(labels[stand.group], []).append(run)
    groups = [group_of(label, own) for label, own in grouped.items()]
    return OfflineComparison(runs[0].config.task, groups, newest_values(runs[0])[0].discount)


def newest_values(run: Run) -> list:
    """Return the offline evaluations of a run's newest policies, one for each seed."""
    best_of = run.config.algorithm.default_best_of
    return [row for row in run.offline_evaluations if (row.step, row.best_of) == (run.steps[-1], best_of)]


def group_of(label: str, runs: Sequence[Run]) -> OfflineGroup:
    """Measure the newest policies of runs with the same settings."""
    held_out = hold_out(runs[0].task)
    assert held_out.trajectory is not None
    policies = [run.policy(seed=seed) for run in runs for seed in run.config.seeds]
    measured = [measure_states(policy, held_out, jax.random.key(0)) for policy in policies]
    trajectory = np.asarray(held_out.trajectory)
    error, outside = (
        estimate(np.stack([np.asarray(each[number]) for each in measured]), trajectory) for number in (0, 1)
    )
    steps = tuple(sorted({run.steps[-1] for run in runs}))
    warning = support_warning(outside.mean, f"the policies of {label}")
    return OfflineGroup(label, len(policies), steps, error, outside, value_of(runs), warning)


def estimate(values: np.ndarray, trajectory: np.ndarray) -> Estimate:
    """Return the mean of values [seeds, states], and its interval over trajectories and seeds."""
    clusters = [values[:, trajectory == number].mean(0)[:, None] for number in np.unique(trajectory)]
    interval = None
    if len(clusters) > 1:
        interval = cluster_bootstrap_interval(lambda rows: float(rows.mean()), clusters)
    return Estimate(float(values.mean()), joined_with_seeds(interval, values.mean(1)))


def value_of(runs: Sequence[Run]) -> Estimate | None:
    """Return the offline value of the newest policies, as recorded."""
    figures = [row.figures for run in runs for row in newest_values(run)]
    rows = [[each.get(name) for name in ("value", "value_low", "value_high")] for each in figures]
    known = np.asarray([row for row in rows if None not in row], float)
    if not len(known):
        return None
    value, low, high = known.mean(0)
    return Estimate(float(value), joined_with_seeds(Interval(float(low), float(high)), known[:, 0]))


def joined_with_seeds(interval: Interval | None, means: np.ndarray) -> Interval | None:
    """Return the union of an interval and Student's interval over the means of two or more seeds."""
    by_seeds = mean_interval(means) if len(means) > 1 else None
    return interval.joined(by_seeds) if interval and by_seeds else interval or by_seeds
