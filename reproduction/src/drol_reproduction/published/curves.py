"""Published learning curves: scores of FQL and its rivals during training, with source and protocol.

`curves.csv` has the scores; `curve_sources.csv` has the source of each curve and its training protocol. Only numbers
were copied; each source names the repository, the commit and the file. No learning curve of DROL is public.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drol_reproduction.published import read_rows


@dataclass(frozen=True)
class Source:
    """The source of a published curve, and the training protocol of its runs.

    Attributes:
        name: Its name in `curves.csv`.
        label: Its name in a legend.
        repository: The repository on GitHub.
        commit: The commit from which the numbers were read.
        file: The file in the repository.
        seeds: The number of runs that the curve summarises.
        identical: Whether the protocol is the paper's: networks 4x512, batch 256, rates 3e-4 and 0.005, two critics,
            the published data, the task's own reward, and the paper's setting for the task.
        protocol: The protocol in words.
        differs: The differences from the paper's protocol; empty if it is identical.
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
    method: str  # its authors' name
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
    """Return the public curves of a task by source, curves with the paper's protocol first."""
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
