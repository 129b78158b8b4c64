"""The box [-1, 1] of all actions, and the box in the units of the data that actions are scaled from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drol.errors import InputError

ACTION_LIMIT = 1 - 1e-5  # data actions are clipped a little inside the box
TOLERANCE = 1e-6  # an action may lie so far outside the box, by rounding, before it is refused


@dataclass(frozen=True)
class ActionBox:
    """The lowest and highest value of each dimension: unit = 2 (action - low) / (high - low) - 1.

    In a dimension without width, a policy may give any number: the action is the one value that the box has.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise InputError(f"action low has {len(self.low)} numbers and action high {len(self.high)}; give as many")
        for dimension, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not (np.isfinite(low) and np.isfinite(high) and low <= high):
                raise InputError(
                    f"action low {low:g} and high {high:g} of dimension {dimension} are no box; "
                    "both must be finite and low at most high"
                )

    @classmethod
    def of(cls, low: Sequence[float], high: Sequence[float], size: int) -> "ActionBox":
        """Return a box of `size` dimensions; a single number stands for all of them."""
        low, high = (tuple(map(float, values)) for values in (low, high))
        low, high = (values * size if len(values) == 1 else values for values in (low, high))
        if len(low) != size:
            raise InputError(f"the action box has {len(low)} numbers; actions have {size}, so give {size} or 1")
        return cls(low, high)

    @property
    def centre(self) -> np.ndarray:
        return (np.asarray(self.low) + np.asarray(self.high)) / 2

    @property
    def half(self) -> np.ndarray:
        """Half the width, by which numbers in [-1, 1] are multiplied."""
        return (np.asarray(self.high) - np.asarray(self.low)) / 2

    @property
    def unit(self) -> np.ndarray:
        """By what actions are divided: half the width, or 1 where there is none, so that what never changes is 0."""
        return np.where(self.half > 0, self.half, 1.0)

    def to_unit(self, action: np.ndarray) -> np.ndarray:
        """Return actions of this box as numbers in [-1, 1]."""
        return (np.asarray(action, np.float64) - self.centre) / self.unit

    def from_unit(self, action: np.ndarray) -> np.ndarray:
        """Return actions in [-1, 1], as a policy gives them, as actions of this box."""
        return np.asarray(action, np.float64) * self.half + self.centre


def find_outside(action: np.ndarray) -> np.ndarray:
    """Return which numbers of actions [...] lie outside [-1, 1] by more than rounding."""
    return np.abs(action) > 1 + TOLERANCE
