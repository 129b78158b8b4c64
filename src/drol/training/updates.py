"""Offline updates from data in memory, in one compiled loop, or from data on disk, as its batches arrive."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
from jax import Array

from drol.algorithms.base import Algorithm
from drol.data.dataset import Dataset
from drol.data.on_disk import MappedDataset
from drol.training.compiled import train_batches, train_chunk
from drol.training.placement import ONE_DEVICE, Placement
from drol.training.reproducibility import available_cores
from drol.types import Metrics, Transition

BATCHES = 32  # read at once
DIAGNOSED = 16_384  # transitions of data on disk that are kept in memory for diagnostics


class Updates:
    """Runs the updates of all seeds; called for one stretch of steps after the other.

    States and totals are as `put_seeds` of the placement makes them.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        dataset: Dataset | MappedDataset,
        keys: Array,
        last_step: int,
        placement: Placement = ONE_DEVICE,
    ):
        self.algorithm, self.last_step, self.placement = algorithm, last_step, placement
        self.dataset = placement.put_everywhere(dataset) if isinstance(dataset, Dataset) else dataset
        self.keys, self.placed_keys = keys, placement.put_seeds(keys)
        self.in_memory = in_memory(dataset)
        self.stream: Iterator[tuple[int, int, Transition]] | None = None
        self.read: tuple[int, int, Transition] | None = None  # first step, number and batches of what was read last
        self.threads = ThreadPoolExecutor(available_cores()) if placement.spread == "threads" else None
        self.compiled = False

    def run(self, states: Any, totals: Any, first_step: int, last_step: int) -> tuple[Any, Any]:
        if isinstance(self.dataset, Dataset):
            return self.train_seeds(states, totals, self.placed_keys, None, first_step, last_step)
        while first_step <= last_step:
            begin, count, batches = self.batches_of(self.dataset, first_step)
            end = min(last_step, begin + count - 1)
            span = begin, first_step - begin, end + 1 - begin
            states, totals = self.train_seeds(states, totals, self.placed_keys, batches, *span)
            first_step = end + 1
        return states, totals

    def train_seeds(self, states: Any, totals: Any, keys: Any, batches: Any, *span: int) -> tuple[Any, Any]:
        """Train all seeds in one call, or each in a call of its own, in threads."""
        if self.threads is None:
            return self.train(states, totals, keys, batches, *span)
        seeds = list(zip(states, totals, keys, batches or [None] * len(keys), strict=True))
        first = [] if self.compiled else [self.train(*seeds.pop(0), *span)]  # two threads would compile twice
        self.compiled = True
        trained = [*first, *self.threads.map(lambda seed: self.train(*seed, *span), seeds)]
        return [state for state, _ in trained], [total for _, total in trained]

    def train(
        self, states: Any, totals: Metrics, keys: Array, batches: Transition | None, *span: int
    ) -> tuple[Any, Metrics]:
        if batches is not None:
            return train_batches(self.algorithm, states, totals, batches, keys, *span)
        sharding = self.placement.batch_sharding
        return jax.block_until_ready(train_chunk(self.algorithm, states, totals, self.dataset, keys, *span, sharding))

    def batches_of(self, dataset: MappedDataset, step: int) -> tuple[int, int, Transition]:
        """What was read, or is read now, for the update of a step; steps come in order."""
        if self.stream is None:
            self.stream = dataset.stream(self.keys, step, self.last_step, self.algorithm.batch_size, BATCHES)
        if self.read is None or step >= self.read[0] + self.read[1]:
            first_step, count, batches = next(self.stream)
            self.read = first_step, count, self.placement.put_batches(batches)
        return self.read


def in_memory(dataset: Dataset | MappedDataset) -> Dataset:
    """The dataset, or of one on disk as much as diagnostics need."""
    return dataset if isinstance(dataset, Dataset) else dataset.some(DIAGNOSED)
