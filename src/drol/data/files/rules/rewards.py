"""Rewards for data that has none: of a formula, of a success column, of a goal.

The rule of timing: the reward of a transition is computed from the row of its action, which holds what is seen before
the action. `next(x)` in a formula is the value in the row after it; in the last row of an episode there is none, and
the row's own value stands in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from drol.data.files.rules.formula import Formula
from drol.errors import InputError

TIMING = "computed from the row of the action, which holds what is seen before it"


@dataclass(frozen=True)
class Goal:
    """A place in some columns, and how near is near enough.

    A step whose row is within the radius has reached it: its reward is 0, any other's -1, and the value beyond it is
    not bootstrapped. The episode goes on, since its later steps tell of other states.
    """

    target: tuple[tuple[str, float], ...]
    radius: float

    def __post_init__(self) -> None:
        if not self.target:
            raise InputError("the goal is empty; give it as NAME=VALUE ..., such as x=0.3 y=0.1")
        if not np.isfinite(self.radius) or self.radius < 0:
            raise InputError(f"--goal-radius is {self.radius:g}; it must be a distance from 0")

    @classmethod
    def parse(cls, texts: list[str] | tuple[str, ...], radius: float | None) -> "Goal":
        """Return a goal of texts such as "x=0.3"."""
        target = []
        for text in texts:
            name, sign, number = text.rpartition("=")
            try:
                value = float(number)
            except ValueError:
                sign, value = "", np.nan
            if not sign or not name or not np.isfinite(value):
                raise InputError(f"--goal has {text!r}; it must be NAME=VALUE, such as x=0.3")
            target.append((name, value))
        if radius is None:
            raise InputError("--goal needs --goal-radius: how near is near enough, in the unit of its columns")
        return cls(tuple(target), radius)

    @property
    def formula(self) -> Formula:
        """The formula that is 1 where the goal is reached."""
        offsets = ", ".join(f"{name!r} - ({value!r})" for name, value in self.target)
        return Formula.parse(f"norm(({offsets},)) <= {self.radius!r}")

    def __str__(self) -> str:
        place = ", ".join(f"{name} = {value:g}" for name, value in self.target)
        return f"0 within {self.radius:g} of the goal ({place}), else -1; no value is bootstrapped beyond the goal"


@dataclass(frozen=True)
class RewardRule:
    """How rewards are computed from columns that are not rewards.

    Attributes:
        formula: Gives the reward, or 1 where the goal is reached.
        goal: The goal, if there is one.
        parts: Which of the joined columns [steps, n] each name of the formula stands for.
    """

    formula: Formula
    goal: Goal | None
    parts: Mapping[str, slice]

    def __str__(self) -> str:
        return str(self.goal) if self.goal else f"the formula {self.formula.text}"

    def evaluate(self, columns: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the reward [steps] of each step, and whether it has reached the goal.

        Args:
            columns: The columns that the formula names, joined, [steps, n].
            ends: Which of the first steps end an episode; steps beyond are not known to have a next one.
        """
        columns = np.asarray(columns, np.float64)
        columns = columns[:, None] if columns.ndim == 1 else columns
        row = np.arange(len(columns))
        after = np.minimum(row + 1, len(columns) - 1)
        after[: len(ends)][ends] = row[: len(ends)][ends]
        values = {name: columns[:, part] for name, part in self.parts.items()}
        following = {name: columns[after][:, part] for name, part in self.parts.items()}
        result = np.broadcast_to(self.formula.evaluate(values, following), (len(columns),))
        if self.goal is None:
            return result, np.zeros(len(columns), bool)
        return result - 1, result == 1
