"""The rows of a run's files, each kind with a type: metrics, evaluations, offline evaluations, online episodes."""

import importlib
import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from drol.errors import InputError
from drol.tasks.base import Episode


class Row(Protocol):
    """A row: it becomes a line of JSON, comes from one, and becomes flat columns for a table."""

    @property
    def step(self) -> int: ...

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self: ...

    def to_dict(self) -> dict[str, Any]: ...

    def columns(self) -> dict[str, Any]: ...


AnyRow = TypeVar("AnyRow", bound=Row)


class Rows(list[AnyRow]):
    """Rows of one kind, in the order in which they were written.

    Attributes:
        skipped: What is said of lines of the file that are no rows: the file, the line, and what is wrong with it.
    """

    def __init__(self, rows: Iterable[AnyRow] = (), skipped: Iterable[str] = ()):
        super().__init__(rows)
        self.skipped = list(skipped)

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


NUMBER = (int, float)


def is_too_large(value: Any) -> bool:
    """Return whether a value is a whole number that no float can hold, which no row of ours has."""
    return type(value) is int and abs(value) > sys.float_info.max


def entry(values: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return an entry of what was read as a row; raise `InputError` if it is absent, of no such type, or below zero.

    Returns and scores may be below zero: they are of the kinds `NUMBER`.
    """
    if name not in values:
        raise InputError(f"it has no {name!r}")
    value = values[name]
    if type(value) not in kinds or is_too_large(value) or (kinds == (int,) and value < 0):
        raise InputError(f"{name} is {reprlib.repr(value)}")
    return value


def numbers(values: Any, *others: Any) -> Mapping[str, Any]:
    """Return numbers by name as they were read; raise `InputError` for anything that is neither one nor in `others`."""
    if not isinstance(values, dict):
        raise InputError(f"{reprlib.repr(values)} stands where numbers by name belong")
    for name, value in values.items():
        if (type(value) not in NUMBER and value not in others) or is_too_large(value):
            raise InputError(f"{name} is {reprlib.repr(value)}")
    return values


@dataclass(frozen=True)
class MetricsRow:
    """Means of one seed's metrics over the updates since the row before, and its diagnostics at this step."""

    step: int
    seed: int
    values: Mapping[str, float]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        rest = {name: value for name, value in values.items() if name not in ("step", "seed")}
        return cls(entry(values, "step", int), entry(values, "seed", int), numbers(rest))

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, "seed": self.seed, **self.values}

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


@dataclass(frozen=True)
class EvaluationRow:
    """One evaluation of one seed: by episodes, or by held-out data where there is no environment."""

    step: int
    seed: int
    score: float | None = None  # None: there is no environment
    episodes: tuple[Episode, ...] = ()
    offline: Mapping[str, float] | None = None  # what held-out data says; None: episodes were played
    validation: Mapping[str, float] | None = None  # diagnostics on validation data
    best_of: int | None = None  # actions drawn for each step; None: the method's own number
    seconds: float | None = None
    acting: Mapping[str, Any] = field(default_factory=dict)  # hyperparameters that were changed for this evaluation

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        played = entry(values, "episodes", list) if "episodes" in values else []
        kinds = {"score": NUMBER, "offline": (dict,), "validation": (dict,), "best_of": (int,), "seconds": NUMBER}
        kinds |= {"acting": (dict,)}
        rest = {name: entry(values, name, *each) for name, each in kinds.items() if values.get(name) is not None}
        for name in ("offline", "validation"):
            numbers(rest.get(name, {}))
        return cls(
            entry(values, "step", int),
            entry(values, "seed", int),
            episodes=tuple(episode_from_dict(each) for each in played),
            **rest,
        )

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
        """Why environments broke, for each episode that ended so."""
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
    """What data alone says of one policy; docs/offline-evaluation.md explains the figures."""

    step: int
    seed: int
    best_of: int
    discount: float
    updates: int  # of fitted-Q evaluation
    unseen: bool  # whether no update saw the data that the policy was tested on
    seconds: float
    figures: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        kinds: dict[str, tuple] = {"step": (int,), "seed": (int,), "best_of": (int,), "discount": NUMBER}
        kinds |= {"updates": (int,), "unseen": (bool,), "seconds": NUMBER}
        figures = {name: value for name, value in values.items() if name not in kinds}
        own = {name: entry(values, name, *each) for name, each in kinds.items()}
        return cls(**own, figures=numbers(figures, None))

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        figures = values.pop("figures")
        return {**values, **figures}

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


@dataclass(frozen=True)
class OnlineEpisodeRow:
    """An episode of fine-tuning that ended at a step."""

    step: int
    seed: int
    total_reward: float
    length: int
    success: bool
    failure: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(entry(values, "step", int), *episode_entries(values))

    def to_dict(self) -> dict[str, Any]:
        values = {"step": self.step, "seed": self.seed, "return": self.total_reward, "length": self.length}
        values["success"] = self.success
        return values | ({"failure": self.failure} if self.failure else {})

    def columns(self) -> dict[str, Any]:
        return self.to_dict()


def episode_from_dict(values: Mapping[str, Any]) -> Episode:
    """Return an episode as it was recorded, without its positions."""
    if not isinstance(values, dict):
        raise InputError(f"{reprlib.repr(values)} stands where an episode belongs")
    return Episode(*episode_entries(values))


def episode_entries(values: Mapping[str, Any]) -> tuple[int, float, int, bool, str | None]:
    """Return seed, return, length, success and failure of an episode."""
    failure = entry(values, "failure", str) if values.get("failure") is not None else None
    total = entry(values, "return", *NUMBER)
    return entry(values, "seed", int), total, entry(values, "length", int), entry(values, "success", bool), failure


def newest_scores(rows: Sequence[EvaluationRow]) -> list[float] | None:
    """Return the score of each seed at the last evaluation that has scores; None if there is none."""
    scored = [row for row in rows if row.score is not None]
    last = max((row.step for row in scored), default=0)  # a row that was made again stands after later ones
    return [row.score for row in scored if row.step == last and row.score is not None] or None
