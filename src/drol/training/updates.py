"""Offline updates from data in memory, in one compiled loop, or from data on disk, as its batches arrive."""

from collections.abc import Iterator
from typing import Any

from jax import Array

from drol.algorithms.base import Algorithm
from drol.data.dataset import Dataset
from drol.data.mapped import MappedDataset
from drol.training.compiled import train_batches, train_chunk
from drol.types import Metrics, Transition

BATCHES = 32  # read at once
DIAGNOSED = 16_384  # transitions of data on disk that are kept in memory for diagnostics


class Updates:
    """Runs the updates of all seeds; called for one stretch of steps after the other."""

    def __init__(self, algorithm: Algorithm, dataset: Dataset | MappedDataset, keys: Array, last_step: int):
        self.algorithm, self.dataset, self.keys, self.last_step = algorithm, dataset, keys, last_step
        self.in_memory = in_memory(dataset)
        self.stream: Iterator[tuple[int, int, Transition]] | None = None
        self.read: tuple[int, int, Transition] | None = None  # first step, number and batches of what was read last

    def run(self, states: Any, totals: Metrics, first_step: int, last_step: int) -> tuple[Any, Metrics]:
        if isinstance(self.dataset, Dataset):
            return train_chunk(self.algorithm, states, totals, self.dataset, self.keys, first_step, last_step)
        while first_step <= last_step:
            begin, count, batches = self.batches_of(self.dataset, first_step)
            end = min(last_step, begin + count - 1)
            states, totals = train_batches(
                self.algorithm, states, totals, batches, self.keys, begin, first_step - begin, end + 1 - begin
            )
            first_step = end + 1
        return states, totals

    def batches_of(self, dataset: MappedDataset, step: int) -> tuple[int, int, Transition]:
        """What was read, or is read now, for the update of a step; steps come in order."""
        if self.stream is None:
            self.stream = dataset.stream(self.keys, step, self.last_step, self.algorithm.batch_size, BATCHES)
        if self.read is None or step >= self.read[0] + self.read[1]:
            self.read = next(self.stream)
        return self.read


def in_memory(dataset: Dataset | MappedDataset) -> Dataset:
    """The dataset, or of one on disk as much as diagnostics need."""
    return dataset if isinstance(dataset, Dataset) else dataset.some(DIAGNOSED)
