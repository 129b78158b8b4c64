"""The types of rows in a run's files: metrics, evaluations, offline evaluations and online episodes."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Protocol, Self, TypeVar

import msgspec
import numpy as np

from drol.decoding import Count, convert
from drol.errors import InputError
from drol.tasks.base import Episode


class Row(Protocol):
    """The interface of rows: conversion to and from JSON, and to the flat columns of a table."""

    @property
    def step(self) -> int: ...

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self: ...

    def to_dict(self) -> dict[str, Any]: ...

    def columns(self) -> dict[str, Any]: ...


AnyRow = TypeVar("AnyRow", bound=Row)


class Rows(list[AnyRow]):
    """Rows of one type, in the order in which they were written."""

    def to_pandas(self) -> Any:
        """Return a pandas `DataFrame` with a column for each number; pandas must be installed.

        Example:
            >>> import drol
            >>> drol.open_run("runs/demo").evaluations.to_pandas()  # doctest: +SKIP
        """
        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise InputError("to_pandas needs the package pandas; install it with: pip install pandas") from error
        return pandas.DataFrame([row.columns() for row in self])


class EpisodeEntry(msgspec.Struct, rename={"total_reward": "return"}, kw_only=True):
    """An episode in a file, without its positions."""

    seed: Count
    total_reward: float
    length: Count
    success: bool
    failure: str | None = None


class OnlineEntry(EpisodeEntry, kw_only=True):
    """An episode of fine-tuning in a file."""

    step: Count


def others(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a row that are not fields of its type."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in values.items() if name not in names}


@dataclass(frozen=True)
class MetricsRow:
    """The mean metrics of one seed over the updates since the previous row, and its diagnostics at this step."""

    step: Count
    seed: Count
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        row = convert(values, cls, extra=True)
        return replace(row, values=convert(others(cls, values), dict[str, float], extra=True))

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, "seed": self.seed, **self.values}

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


@dataclass(frozen=True)
class EvaluationRow:
    """One evaluation of one seed, by episodes or, without an environment, by held-out data."""

    step: Count
    seed: Count
    score: float | None = None  # None: no episode was played
    episodes: tuple[Episode, ...] = ()
    offline: Mapping[str, float] | None = None  # metrics on held-out data; None: there is an environment
    validation: Mapping[str, float] | None = None  # diagnostics on validation data
    best_of: Count | None = None  # actions drawn for each step; None: the method's default
    seconds: float | None = None
    acting: Mapping[str, Any] = field(default_factory=dict)  # hyperparameters that were changed for this evaluation

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        row = convert({**values, "episodes": []}, cls, extra=True)
        played = convert(values.get("episodes", []), list[EpisodeEntry], "episodes", extra=True)
        return replace(row, episodes=tuple(Episode(**msgspec.structs.asdict(each)) for each in played))

    def to_dict(self) -> dict[str, Any]:
        values = {"step": self.step, "seed": self.seed, "best_of": self.best_of, "seconds": self.seconds}
        values |= {"validation": self.validation, "score": self.score, "offline": self.offline}
        values |= {"acting": dict(self.acting) or None}
        values = {name: value for name, value in values.items() if value is not None}
        return values | ({"episodes": [episode.to_dict() for episode in self.episodes]} if self.episodes else {})

    @property
    def successes(self) -> int:
        return sum(episode.success for episode in self.episodes)

    @property
    def failures(self) -> list[str]:
        """The reason of each failed episode."""
        return [episode.failure for episode in self.episodes if episode.failure]

    def columns(self) -> dict[str, Any]:
        values: dict[str, Any] = {"step": self.step, "seed": self.seed, "best_of": self.best_of, "score": self.score}
        values |= self.acting
        if self.episodes:
            values |= {"episodes": len(self.episodes), "successes": self.successes, "failures": len(self.failures)}
            values["mean_return"] = float(np.mean([episode.total_reward for episode in self.episodes]))
            values["mean_length"] = float(np.mean([episode.length for episode in self.episodes]))
        for prefix, figures in (("validation/", self.validation), ("offline/", self.offline)):
            values |= {prefix + name: value for name, value in (figures or {}).items()}
        return values


@dataclass(frozen=True)
class OfflineRow:
    """The metrics of one policy on data only; docs/offline-evaluation.md explains them."""

    step: Count
    seed: Count
    best_of: Count
    discount: float
    updates: Count  # of fitted-Q evaluation
    unseen: bool  # whether the policy was tested on data that was not used for training
    seconds: float
    figures: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        row = convert(values, cls, extra=True)
        return replace(row, figures=convert(others(cls, values), dict[str, float | None], extra=True))

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        figures = values.pop("figures")
        return {**values, **figures}

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


@dataclass(frozen=True)
class OnlineEpisodeRow:
    """An episode of fine-tuning that ended at a step."""

    step: Count
    seed: Count
    total_reward: float
    length: int
    success: bool
    failure: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**msgspec.structs.asdict(convert(values, OnlineEntry, extra=True)))

    def to_dict(self) -> dict[str, Any]:
        values = {"step": self.step, "seed": self.seed, "return": self.total_reward, "length": self.length}
        values["success"] = self.success
        return values | ({"failure": self.failure} if self.failure else {})

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


def newest_scores(rows: Sequence[EvaluationRow]) -> list[float] | None:
    """Return the score of each seed at the last evaluation that has scores; None if there is none."""
    scored = [row for row in rows if row.score is not None]
    last = max((row.step for row in scored), default=0)  # a repeated evaluation comes after rows of later steps
    return [row.score for row in scored if row.step == last and row.score is not None] or None
