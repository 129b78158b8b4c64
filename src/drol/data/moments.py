"""Mean, standard deviation and range of values that are added piece by piece.

They are computed in float64, since squares of large numbers overflow in float32.
"""

from typing import Any

import numpy as np

from drol.data.trajectory_rows import pieces
from drol.errors import InputError

SMALLEST_DEVIATION = 1e-6  # standardisation treats a dimension with a smaller standard deviation as constant
LARGEST = float(np.finfo(np.float32).max)


class Moments:
    """The minimum, maximum, mean and standard deviation of each dimension, over rows that are added piece by piece.

    It sums differences from the first row, so that the squares of large numbers do not cancel.
    """

    def __init__(self) -> None:
        self.count = 0
        self.low = self.high = self.total = self.squares = self.shift = np.zeros(0)

    def add(self, values: np.ndarray) -> None:
        """Add rows [rows, ...]; all but the first axis are flattened."""
        if not len(values):
            return
        values = values.reshape(len(values), -1).astype(np.float64)
        if not self.count:
            self.low, self.high, self.shift = values.min(0), values.max(0), values[0]
            self.total = self.squares = np.zeros(values.shape[1])
        self.count += len(values)
        self.low, self.high = np.minimum(self.low, values.min(0)), np.maximum(self.high, values.max(0))
        moved = values - self.shift
        self.total, self.squares = self.total + moved.sum(0), self.squares + np.square(moved).sum(0)

    @property
    def mean(self) -> np.ndarray:
        return self.shift + self.total / max(1, self.count)

    @property
    def deviation(self) -> np.ndarray:
        mean = self.total / max(1, self.count)
        return np.sqrt(np.maximum(0, self.squares / max(1, self.count) - np.square(mean)))

    @property
    def constant(self) -> list[int]:
        """The indices of the constant dimensions."""
        return np.flatnonzero(self.low == self.high).tolist()

    @property
    def tiny(self) -> list[int]:
        """The indices of the dimensions that vary by so little that standardisation treats them as constant."""
        return np.flatnonzero((self.low < self.high) & (self.deviation < SMALLEST_DEVIATION)).tolist()

    @property
    def too_wide(self) -> list[int]:
        """The indices of the dimensions whose distance from their mean exceeds the range of float32."""
        return np.flatnonzero(np.maximum(self.high - self.mean, self.mean - self.low) > LARGEST).tolist()


def observation_moments(observation: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and standard deviation of observations [rows, ...] in float32, for standardisation.

    The result is bitwise the same whether the values are on the device, in memory or on disk.
    """
    moments = Moments()
    values = np.asarray(observation)
    for piece in pieces(values):
        moments.add(values[piece])
    for number in moments.too_wide:
        raise InputError(
            f"observation dimension {number} reaches from {moments.low[number]:.4g} to {moments.high[number]:.4g}, too "
            "far from its mean to be standardised in float32; give it in another unit"
        )
    shape = values.shape[1:]
    return moments.mean.astype(np.float32).reshape(shape), moments.deviation.astype(np.float32).reshape(shape)
