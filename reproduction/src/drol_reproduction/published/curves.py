"""Learning curves that others published: scores of FQL and its rivals over training, with source and protocol.

`curves.csv` has the scores and `curve_sources.csv` says where each was published and how the runs were trained. Only
numbers were taken; each source names the repository, the commit and the file. For DROL no such curve is public.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drol_reproduction.published import read_rows


@dataclass(frozen=True)
class Source:
    """Where a curve was published, and how its runs were trained.

    Attributes:
        name: What `curves.csv` calls it.
        label: Its name in a legend.
        repository: On GitHub.
        commit: The commit that was read.
        file: The file there.
        seeds: The number of runs that the curve summarises.
        identical: Whether the protocol is the paper's: networks 4x512, batch 256, rates 3e-4 and 0.005, two critics,
            the published data, the task's own reward, and the paper's setting for the task.
        protocol: In words.
        differs: In what it differs from the paper's; empty if it is identical.
    """

    name: str
    label: str
    repository: str
    commit: str
    file: str
    seeds: int
    identical: bool
    protocol: str
    differs: str


class Point(NamedTuple):
    """One published score."""

    task: str
    method: str  # as its authors call it
    setting: str
    updates: int
    seed: int | None  # None for a mean
    statistic: str  # "run", or "mean" over the seeds of the source
    score: float
    source: Source


@functools.cache
def curve_sources() -> dict[str, Source]:
    """Return the sources by name."""
    return {
        row["source"]: Source(
            row["source"], row["label"], row["repository"], row["commit"], row["file"], int(row["seeds"]),
            row["identical"] == "yes", row["protocol"], row["differs"],
        )
        for row in read_rows("curve_sources")
    }  # fmt: skip


@functools.cache
def public_points() -> tuple[Point, ...]:
    """Return every published score of a learning curve."""
    sources = curve_sources()
    return tuple(
        Point(
            row["task"], row["method"], row["setting"], int(row["updates"]), int(row["seed"]) if row["seed"] else None,
            row["statistic"], float(row["score"]), sources[row["source"]],
        )
        for row in read_rows("curves")
    )  # fmt: skip


def public_curves(task: str) -> dict[Source, list[Point]]:
    """Return the public curves of a task by source, those of the paper's protocol first."""
    found: dict[Source, list[Point]] = {}
    for point in public_points():
        if point.task == task:
            found.setdefault(point.source, []).append(point)
    return dict(sorted(found.items(), key=lambda each: not each[0].identical))


def tasks_with_curves() -> list[str]:
    return list(dict.fromkeys(point.task for point in public_points()))


def mean_curve(points: Iterable[Point]) -> dict[int, float]:
    """Return the mean score after each number of updates."""
    scores: dict[int, list[float]] = {}
    for point in points:
        scores.setdefault(point.updates, []).append(point.score)
    return {updates: float(np.mean(own)) for updates, own in sorted(scores.items())}
