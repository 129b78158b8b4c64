"""Mean, deviation and range of values that come in pieces."""

import numpy as np


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
