"""Mean, deviation and range of values that come in pieces, in float64: squares of large numbers overflow in float32."""

from typing import Any

import numpy as np

from drol.data.rows import pieces
from drol.errors import InputError

SMALLEST_DEVIATION = 1e-6  # a dimension that varies less than this is taken for constant where data is standardised
LARGEST = float(np.finfo(np.float32).max)


class Moments:
    """The smallest and largest value, mean and deviation of each dimension, over rows that come in pieces.

    Sums are kept of the differences from the first row, so that the squares of large numbers do not cancel.
    """

    def __init__(self) -> None:
        self.count = 0
        self.low = self.high = self.total = self.squares = self.shift = np.zeros(0)

    def add(self, values: np.ndarray) -> None:
        """Take in rows [rows, ...]; all but the first axis are flattened."""
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
        """The numbers of the dimensions that never change."""
        return np.flatnonzero(self.low == self.high).tolist()

    @property
    def tiny(self) -> list[int]:
        """The numbers of the dimensions that change, but by so little that they are taken for constant."""
        return np.flatnonzero((self.low < self.high) & (self.deviation < SMALLEST_DEVIATION)).tolist()

    @property
    def too_wide(self) -> list[int]:
        """The numbers of the dimensions that reach further from their mean than float32 can hold."""
        return np.flatnonzero(np.maximum(self.high - self.mean, self.mean - self.low) > LARGEST).tolist()


def observation_moments(observation: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of rows of observations [rows, ...], to be standardised by; both are of float32.

    The same values give the same bits, whether they are on the device, in memory or on disk.
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
