"""The number that a table reports for a seed, made from its evaluations.

The protocol of the FQL paper, which the DROL paper follows: on OGBench the mean of the last three evaluations of the
training, on D4RL the last one, never the best.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from drol.errors import unknown_name
from drol.experiments.results import Result, collect_results

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


def mean_score(folder: Path, protocol: str = "fql") -> float | None:
    """Return the mean reported score of the runs below a folder; None if it has no finished one."""
    scores = seed_scores(collect_results([folder]), protocol) if folder.is_dir() else {}
    return float(np.mean(list(scores.values()))) if scores else None
