"""Run offline updates: in one compiled loop for data in memory, or batch by batch for data on disk."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import jax
from jax import Array

from drol.algorithms.base import Algorithm
from drol.data.dataset import Transitions
from drol.data.on_disk import OnDiskDataset
from drol.machine import available_cores
from drol.training.compiled import train_batches, train_chunk
from drol.training.placement import ONE_DEVICE, Placement
from drol.transition import Transition

BATCHES_AT_ONCE = 32  # batches that are read from disk together
DIAGNOSED = 16_384  # transitions of data on disk that are kept in memory for diagnostics


class Read(NamedTuple):
    """Batches [seed, number, batch, ...] that were read from disk."""

    first_step: int  # the update that uses batch number 0
    count: int  # number of batches to use
    batches: Any  # as returned by `put_batches` of the placement


class Updates:
    """Run the updates of all seeds, in consecutive ranges of steps.

    States and totals are in the form that `put_seeds` of the placement returns.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        dataset: Transitions,
        keys: Array,
        last_step: int,
        placement: Placement = ONE_DEVICE,
    ):
        self.algorithm, self.dataset, self.last_step, self.placement = algorithm, dataset, last_step, placement
        on_device = dataset.on_device
        self.on_device = None if on_device is None else placement.put_everywhere(on_device)
        self.keys, self.placed_keys = keys, placement.put_seeds(keys)
        self.diagnosed = dataset.some(DIAGNOSED)  # data in memory for diagnostics
        self.stream: Iterator[tuple[int, int, Transition]] | None = None
        self.read: Read | None = None
        self.threads = ThreadPoolExecutor(available_cores()) if placement.spread == "threads" else None
        self.compiled = False

    def run(self, states: Any, totals: Any, first_step: int, last_step: int) -> tuple[Any, Any]:
        """Run the updates `first_step` to `last_step` and return the new states and totals."""
        if self.on_device is not None:

            def train(states: Any, totals: Any, keys: Array, _: None) -> tuple[Any, Any]:
                sharding = self.placement.batch_sharding
                chunk = (self.algorithm, states, totals, self.on_device, keys, first_step, last_step, sharding)
                return jax.block_until_ready(train_chunk(*chunk))

            return self.train_seeds(train, states, totals, None)
        while first_step <= last_step:
            read = self.batches_of(first_step)
            end = min(last_step, read.first_step + read.count - 1)
            states, totals = self.train_read(read, states, totals, first_step, end)
            first_step = end + 1
        return states, totals

    def train_read(self, read: Read, states: Any, totals: Any, first_step: int, last_step: int) -> tuple[Any, Any]:
        """Run updates whose batches were read from disk."""

        def train(states: Any, totals: Any, keys: Array, batches: Transition) -> tuple[Any, Any]:
            span = read.first_step, first_step - read.first_step, last_step + 1 - read.first_step
            return train_batches(self.algorithm, states, totals, batches, keys, *span)

        return self.train_seeds(train, states, totals, read.batches)

    def train_seeds(self, train: Callable, states: Any, totals: Any, batches: Any) -> tuple[Any, Any]:
        """Train all seeds in one call, or each seed in a separate call in a thread."""
        if self.threads is None:
            return train(states, totals, self.placed_keys, batches)
        count = len(self.placed_keys)
        seeds = list(zip(states, totals, self.placed_keys, batches or [None] * count, strict=True))
        first = [] if self.compiled else [train(*seeds.pop(0))]  # the first seed, so that only one thread compiles
        self.compiled = True
        trained = [*first, *self.threads.map(lambda seed: train(*seed), seeds)]
        return [state for state, _ in trained], [total for _, total in trained]

    def batches_of(self, step: int) -> Read:
        """Return the loaded block with the batch of a step; load the next block if needed. Steps must be in order."""
        if self.stream is None:
            dataset = cast(OnDiskDataset, self.dataset)
            batch_size = self.algorithm.batch_size
            self.stream = dataset.stream(self.keys, step, self.last_step, batch_size, BATCHES_AT_ONCE)
        if self.read is None or step >= self.read.first_step + self.read.count:
            first_step, count, batches = next(self.stream)
            self.read = Read(first_step, count, self.placement.put_batches(batches))
        return self.read
