"""Compute the score that a table reports for a seed from its evaluations.

The protocol of the FQL paper, which the DROL paper follows: on OGBench the mean of the last three evaluations of the
training, on D4RL the last one, never the best.
"""

import json
from collections.abc import Iterable, Sequence

import numpy as np

from drol.errors import unknown_name
from drol.planning.planned_run import CANDIDATES
from drol.results.result import Result

PROTOCOLS = ("fql", "last", "best")
AVERAGED = 3  # number of evaluations in the reported mean on OGBench


def seed_scores(rows: Iterable[Result], protocol: str = "fql") -> dict[int, float]:
    """Return the reported score of each seed with finished training; the rows belong to one task and setting."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    by_seed: dict[int, list[Result]] = {}
    for row in rows:
        if row.evaluation == "training" and row.step > 0:
            by_seed.setdefault(row.seed, []).append(row)
    finished = {seed: own for seed, own in by_seed.items() if max(row.step for row in own) >= own[0].steps}
    return {seed: reported_score(own, protocol) for seed, own in sorted(finished.items())}


def reported_score(rows: Sequence[Result], protocol: str) -> float:
    """Return the reported score of one seed from its evaluations."""
    scores = [row.score for row in sorted(rows, key=lambda row: row.step)]
    if protocol == "best":
        return max(scores)
    averaged = AVERAGED if protocol == "fql" and "singletask" in rows[0].task else 1
    return float(np.mean(scores[-averaged:]))


def groups_by_settings(rows: Iterable[Result]) -> list[list[Result]]:
    """Group a method's results on one task by settings (without K) and updates; most finished seeds first."""
    groups: dict[tuple[str, int], list[Result]] = {}
    for row in rows:
        settings = {name: value for name, value in json.loads(row.settings).items() if name != CANDIDATES}
        groups.setdefault((json.dumps(settings, sort_keys=True), row.steps), []).append(row)
    return sorted(groups.values(), key=lambda own: -len(finished_seeds(own)))


def finished_seeds(rows: Iterable[Result]) -> set[tuple[str, int]]:
    """Return the settings and the seed of every finished training."""
    return {(row.settings_id, row.seed) for row in rows if row.evaluation == "training" and 0 < row.steps <= row.step}


def rows_by_candidates(results: Iterable[Result], task: str) -> dict[int, list[Result]]:
    """Return DROL's results on a task by K.

    Only one combination of other settings and number of updates counts: the one with the most finished seeds.
    """
    groups = groups_by_settings(row for row in results if row.method == "drol" and row.task == task)
    found: dict[int, list[Result]] = {}
    for row in groups[0] if groups else ():
        found.setdefault(row.setting(CANDIDATES), []).append(row)
    return found


def candidate_means(results: Sequence[Result], task: str) -> dict[int, float]:
    """Return the score of each K that was run on all choosing tasks (see `choosing_tasks`) of a task."""
    found: list[dict[int, float]] = []
    for each in choosing_tasks(task):
        scores = {count: seed_scores(rows) for count, rows in rows_by_candidates(results, each).items()}
        found.append({count: float(np.mean(list(own.values()))) for count, own in scores.items() if own})
    shared = set.intersection(*({*each} for each in found))
    return {count: float(np.mean([each[count] for each in found])) for count in sorted(shared)}


def chosen_candidates(results: Sequence[Result], task: str, ladder: Sequence[int] | None = None) -> int | None:
    """Return the K that the paper's protocol chooses for a task: the best, and among equals the smallest.

    Args:
        results: Results of the choosing tasks.
        task: The task.
        ladder: The values of K that must have been tried; if None, all tried values, at least two.

    Returns:
        K; None while a choosing task lacks one of these values.
    """
    means = candidate_means(results, task)
    if len(means) < 2 or not {*(ladder or ())} <= {*means}:
        return None
    return max(means, key=lambda count: (means[count], -count))


DEFAULT_NUMBERS = {"antsoccer": 4, "cube": 2, "scene": 2, "puzzle": 4}  # OGBench's default tasks; 1 elsewhere


def choosing_tasks(task: str) -> tuple[str, ...]:
    """Return the tasks on which the paper's protocol chooses K for a task.

    These are the default task of an OGBench dataset, the three datasets of an Adroit task, or the D4RL maze itself.
    """
    if task.endswith("-v2"):
        return (task,)
    if task.endswith("-v1"):
        name = task.split("-")[0]
        return tuple(f"{name}-{data}-v1" for data in ("human", "cloned", "expert"))
    return (default_task(task.split("-singletask")[0]),)


def default_task(dataset: str) -> str:
    """Return the default task of an OGBench dataset."""
    number = next((each for start, each in DEFAULT_NUMBERS.items() if dataset.startswith(start)), 1)
    return f"{dataset}-singletask-task{number}-v0"


def with_number(task: str) -> str:
    """Return the name of a task with its number: `cube-single-play-singletask-v0` is task 2 of its dataset."""
    dataset = task.removesuffix("-singletask-v0")
    return task if dataset == task else default_task(dataset)
