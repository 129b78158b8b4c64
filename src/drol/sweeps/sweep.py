"""The definition of a sweep: tasks, methods, seeds, parameters, search and budget."""

import dataclasses
import fnmatch
import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drol.algorithms import find_algorithm
from drol.errors import InputError, unknown_name
from drol.runs.config import GROWING, MOST_SEEDS, RunConfig
from drol.tasks import find_source, known_sources

ROOT = Path("runs/sweeps")
KINDS = ("grid", "random", "halving", "asha")
RUNGS = ("halving", "asha")  # searches that drop choices after some steps
GOALS = ("highest", "lowest")
DISTRIBUTIONS = ("uniform", "log_uniform", "choice")


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter, or a setting of a run, that a sweep varies.

    Args:
        name: Its name.
        values: The values to try, or the values to draw from if the distribution is "choice".
        distribution: How a value is drawn: "uniform", "log_uniform" or "choice"; None tries every value.
        low: The lower bound of a distribution.
        high: The upper bound of a distribution.
        methods: The methods for which it is varied; all methods of the sweep if None.
    """

    name: str
    values: tuple[Any, ...] = ()
    distribution: str | None = None
    low: float | None = None
    high: float | None = None
    methods: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        what = f"parameters.{self.name}"
        if self.distribution not in (None, *DISTRIBUTIONS):
            raise unknown_name(f"distribution of {what}", str(self.distribution), DISTRIBUTIONS)
        if self.distribution in (None, "choice"):
            if not self.values:
                raise InputError(f"{what} has no values, so the sweep has no runs; give at least one")
            if len({(type(value), value) for value in self.values}) < len(self.values):
                raise InputError(f"{what} has a value twice; give each once")
            return
        if self.low is None or self.high is None or not math.isfinite(self.low) or not self.low < self.high < math.inf:
            raise InputError(f"{what} goes from {self.low} to {self.high}; the first must be less than the second")
        if not math.isfinite(self.high - self.low):
            raise InputError(f"{what} goes from {self.low} to {self.high}; the width must be below 1.8e308")
        if self.distribution == "log_uniform" and self.low <= 0:
            raise InputError(f"{what} goes from {self.low}; for log_uniform it must be above 0")

    def applies_to(self, method: str) -> bool:
        return self.methods is None or method in self.methods


@dataclass(frozen=True)
class Search:
    """How parameter values are chosen and compared.

    Args:
        kind: "grid" (all combinations), "random" (random combinations), "halving" (successive halving: all or random
            combinations; only the best continue after some steps) or "asha" (asynchronous halving: a
            combination continues if it is among the best that have reached the same step so far).
        samples: The number of random combinations.
        seed: The seed of the random combinations.
        metric: The metric to compare: "score", or another number of the rows of evaluations or metrics.
        goal: "highest" or "lowest": which values of the metric are best.
        at: The steps after which only the best continue, for "halving" and "asha". The combinations that remain after
            the last of these steps are trained to the end.
        keep: The share of combinations that continue.
    """

    kind: str = "grid"
    samples: int | None = None
    seed: int = 0
    metric: str = "score"
    goal: str = "highest"
    at: tuple[int, ...] = ()
    keep: float = 0.5

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("goal", self.goal, GOALS)):
            if value not in known:
                raise unknown_name(f"search.{name}", value, known, f"It may be {', '.join(known)}")
        if self.samples is not None and (self.kind == "grid" or self.samples < 1):
            raise InputError(f"search.samples is {self.samples}; it must be at least 1, and a grid has none")
        if self.kind == "random" and self.samples is None:
            raise InputError("search.kind is 'random'; give search.samples, how many combinations are drawn")
        if self.seed < 0:
            raise InputError(f"search.seed is {self.seed}; it must be at least 0")
        if self.kind not in RUNGS:
            if self.at or self.keep != Search.keep:
                raise InputError(
                    f"search.at and search.keep are for kind = 'halving' or 'asha'; the kind is {self.kind!r}"
                )
        elif not self.at or list(self.at) != sorted({*self.at}) or self.at[0] < 1:
            raise InputError(f"search.at is {list(self.at)}; it must be rising steps, such as [5000, 10000]")
        if not 0 < self.keep < 1:
            raise InputError(f"search.keep is {self.keep}; it must be a share above 0 and below 1")

    @property
    def draws(self) -> bool:
        """Whether combinations are drawn."""
        return self.samples is not None


@dataclass(frozen=True)
class Budget:
    """The maximum cost of a sweep; a run that would exceed it is not started.

    Args:
        updates: Updates of all seeds of all runs.
        core_hours: Hours times cores of all runs, failed ones included. When they are spent, no further run starts.
            Time of runs that were stopped early is not counted.
    """

    updates: int | None = None
    core_hours: float | None = None

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"budget.{each.name} is {value}; it must be above 0")


@dataclass(frozen=True)
class Sweep:
    """Runs of methods on tasks with all seeds, for each choice of the parameters.

    Args:
        name: Its name, and the name of the folder of its files below `root/sweeps`.
        tasks: Names of tasks, or patterns such as "cube-single-*".
        methods: Names of algorithms.
        seeds: The seeds of each choice.
        preset: The preset that all runs start from.
        root: The folder of the runs; sweeps with the same root share runs.
        settings: Changes to the preset, for every run.
        parameters: The parameters that are varied.
        search: How their values are chosen.
        budget: The maximum cost.
        seeds_per_run: Seeds that are trained in one process.
    """

    name: str
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    root: Path = ROOT
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    search: Search = field(default_factory=Search)
    budget: Budget = field(default_factory=Budget)
    seeds_per_run: int = 1

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise InputError(f"name is {self.name!r}; it must be made of letters, digits, - and _")
        for name in ("tasks", "methods", "seeds"):
            values = getattr(self, name)
            if not values or len({*values}) < len(values):
                raise InputError(f"{name} is {list(values)}; it must name at least one, and each once")
        for seed in self.seeds:
            if not 0 <= seed <= MOST_SEEDS:
                raise InputError(f"seeds has {seed}; a seed is from 0 to {MOST_SEEDS}")
        if "\0" in str(self.root):
            raise InputError(f"root is {str(self.root)!r}; it contains a null character, which no path may have")
        if self.seeds_per_run < 1:
            raise InputError(f"seeds_per_run is {self.seeds_per_run}; it must be at least 1")
        for method in self.methods:
            find_algorithm(method)
        for each in self.parameters:
            self.check_parameter(each)
        for name in ("seeds", "task", "algorithm"):
            if name in self.settings:
                raise InputError(f"settings.{name}: give {name} outside of [settings]")

    def check_parameter(self, parameter: Parameter) -> None:
        """Raise `InputError` for a parameter that a method of the sweep does not have, or that cannot be varied."""
        what = f"parameters.{parameter.name}"
        if parameter.name in (*GROWING, "seeds", "task", "algorithm"):
            raise InputError(
                f"{what} cannot be varied: runs that differ only in {parameter.name} would share a folder; "
                "give it once, outside of [parameters]"
            )
        if parameter.name in self.settings:
            raise InputError(f"{parameter.name} is in [settings] and in [parameters]; give it in one of them")
        for method in parameter.methods or ():
            if method not in self.methods:
                raise unknown_name(f"method of {what}", method, self.methods, "It must be one of the sweep's methods")
        if parameter.distribution in ("uniform", "log_uniform") and not self.search.draws:
            raise InputError(f"{what} is a distribution; give values, or search.samples with search.kind = 'random'")
        run_names = [each.name for each in dataclasses.fields(RunConfig)]
        for method in filter(parameter.applies_to, self.methods):
            own = [each.name for each in dataclasses.fields(find_algorithm(method))]
            if parameter.name not in (*own, *run_names):
                others = [each for each in self.methods if hasattr(find_algorithm(each), parameter.name)]
                if others:
                    raise InputError(
                        f"{what}: {method} has no such hyperparameter; add methods = {others} to this parameter"
                    )
                advice = f"`drol algorithms show {method}` lists them"
                raise unknown_name(f"hyperparameter of {method}", parameter.name, (*own, *run_names), advice)

    @functools.cached_property
    def task_names(self) -> list[str]:
        """The names of the tasks, with patterns resolved."""
        found: dict[str, None] = {}
        known = [task for source in known_sources().values() for task in source.task_names()]
        for pattern in self.tasks:
            if pattern in known:
                found[pattern] = None
                continue
            matching = fnmatch.filter(known, pattern)
            if not matching:
                find_source(pattern)  # raises an error with the nearest known name
            found |= dict.fromkeys(matching)
        return list(found)

    @property
    def folder(self) -> Path:
        """The folder of the sweep's files."""
        return self.root / "sweeps" / self.name
