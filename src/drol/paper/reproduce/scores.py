"""The number that a table reports for a seed, made from its evaluations.

The protocol of the FQL paper, which the DROL paper follows: on OGBench the mean of the last three evaluations of the
training, on D4RL the last one, never the best.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from drol.errors import unknown_name
from drol.experiments.results.result import Result

PROTOCOLS = ("fql", "last", "best")
AVERAGED = 3  # evaluations whose mean is reported on OGBench


def seed_scores(rows: Iterable[Result], protocol: str = "fql") -> dict[int, float]:
    """Return the reported score of each seed that was trained to its end; the rows are of one task and setting."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    by_seed: dict[int, list[Result]] = {}
    for row in rows:
        if row.evaluation == "training" and row.step > 0:
            by_seed.setdefault(row.seed, []).append(row)
    finished = {seed: own for seed, own in by_seed.items() if max(row.step for row in own) >= own[0].steps}
    return {seed: reported_score(own, protocol) for seed, own in sorted(finished.items())}


def reported_score(rows: Sequence[Result], protocol: str) -> float:
    """Return the score of one seed's evaluations."""
    scores = [row.score for row in sorted(rows, key=lambda row: row.step)]
    if protocol == "best":
        return max(scores)
    averaged = AVERAGED if protocol == "fql" and "singletask" in rows[0].task else 1
    return float(np.mean(scores[-averaged:]))


def chosen_candidates(results: Iterable[Result], task: str, ladder: Sequence[int] | None = None) -> int | None:
    """Return the K that the paper's protocol chooses for a task: the best, and of equals the smallest.

    Args:
        results: Results of those tasks.
        task: The task.
        ladder: The values of K that must have been tried; if None, two or more that were.

    Returns:
        K; None while a choosing task lacks one of them.
    """
    scores: dict[int, dict[str, float]] = {}
    choosing = choosing_tasks(task)
    groups: dict[tuple[int, str], list[Result]] = {}
    for row in results:
        if row.method == "drol" and row.task in choosing:
            groups.setdefault((row.setting("num_candidates"), row.task), []).append(row)
    for (candidates, name), rows in groups.items():
        seeds = seed_scores(rows)
        if seeds:
            scores.setdefault(candidates, {})[name] = float(np.mean(list(seeds.values())))
    means = {each: float(np.mean(list(own.values()))) for each, own in scores.items() if {*own} == {*choosing}}
    if len(means) < 2 or not {*(ladder or ())} <= {*means}:
        return None
    return max(means, key=lambda candidates: (means[candidates], -candidates))


DEFAULT_NUMBERS = {"antsoccer": 4, "cube": 2, "scene": 2, "puzzle": 4}  # OGBench's default tasks; 1 elsewhere


def choosing_tasks(task: str) -> tuple[str, ...]:
    """Return the tasks on which the paper's protocol chooses K for a task.

    It is the default task of an OGBench dataset, the three datasets of a task of Adroit, and each maze of D4RL itself.
    """
    if task.endswith("-v2"):
        return (task,)
    if task.endswith("-v1"):
        name = task.split("-")[0]
        return tuple(f"{name}-{data}-v1" for data in ("human", "cloned", "expert"))
    dataset = task.split("-singletask")[0]
    number = next((each for start, each in DEFAULT_NUMBERS.items() if dataset.startswith(start)), 1)
    return (f"{dataset}-singletask-task{number}-v0",)
