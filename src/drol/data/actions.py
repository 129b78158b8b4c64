"""Action bounds: the range [-1, 1] that policies use, and the bounds in the units of the data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drol.errors import InputError

ACTION_LIMIT = 1 - 1e-5  # the actions of the data are clipped to +-ACTION_LIMIT
SMALLEST_SHARE = 1e-4  # share of the width of the bounds; actions that vary by less are too close after scaling
WIDEST = 1e30  # the largest half width; wider bounds mean that actions are unbounded
TOLERANCE = 1e-6  # rounding error by which an action may exceed the bounds


@dataclass(frozen=True)
class ActionBox:
    """Action bounds, scaled by unit = 2 (action - low) / (high - low) - 1 in each dimension.

    In a dimension where low equals high, the action is always that value, for any output of the policy.
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
        """Return bounds of `size` dimensions; a single number applies to all of them."""
        low, high = (tuple(map(float, values)) for values in (low, high))
        low, high = (values * size if len(values) == 1 else values for values in (low, high))
        if len(low) != size:
            raise InputError(f"the action box has {len(low)} numbers; actions have {size}, so give {size} or 1")
        return cls(low, high)

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.low) / 2 + np.asarray(self.high) / 2  # the sum of large bounds would overflow

    @property
    def half(self) -> np.ndarray:
        """Half the width of the bounds, the factor by which `from_unit` multiplies actions."""
        return np.asarray(self.high) / 2 - np.asarray(self.low) / 2

    @property
    def unit(self) -> np.ndarray:
        """The divisor in `to_unit`: half the width, or 1 where the width is 0, so that a constant action becomes 0."""
        return np.where(self.half > 0, self.half, 1.0)

    def to_unit(self, action: np.ndarray) -> np.ndarray:
        """Scale actions within these bounds to [-1, 1]."""
        return (np.asarray(action, np.float64) - self.centre) / self.unit

    def from_unit(self, action: np.ndarray) -> np.ndarray:
        """Scale actions in [-1, 1], as a policy returns them, to these bounds."""
        return np.asarray(action, np.float64) * self.half + self.centre


class ActionRange:
    """The lowest and highest finite action of each dimension, updated block by block."""

    def __init__(self) -> None:
        self.low = self.high = np.zeros(0)

    def add(self, action: np.ndarray) -> None:
        """Add actions [steps] or [steps, size]; ignore actions whose size differs from the first."""
        if action.dtype.kind not in "biuf" or not action.size:
            return
        action = action.astype(np.float64).reshape(len(action), -1)
        action = action[np.isfinite(action).all(-1)]
        if len(self.low):
            action = np.concatenate((action, [self.low, self.high])) if action.shape[1] == len(self.low) else action[:0]
        if len(action):
            self.low, self.high = action.min(0), action.max(0)

    def lost_in(self, box: ActionBox) -> list[int]:
        """Return the dimensions in which the bounds are too wide to distinguish the actions after scaling."""
        if len(self.low) != len(box.low):
            return []
        varies = (self.high > self.low) & (self.high / 2 - self.low / 2 < SMALLEST_SHARE * box.half)
        return np.flatnonzero(varies | (box.half > WIDEST)).tolist()


def find_outside(action: np.ndarray) -> np.ndarray:
    """Return a mask [...] of the numbers that lie outside [-1, 1] by more than `TOLERANCE`."""
    return np.abs(action) > 1 + TOLERANCE
