"""A dataset that stays on disk and gives the same batches as a `Dataset` in memory; the host gathers them.

The transitions of a batch depend only on the key and the number of the update, so they are known before the update
runs. A thread reads the next batches while the device is busy, and requests all their pages at once.
"""

import functools
import mmap
import os
import queue
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.data.dataset import Dataset
from drol.data.images import check_standardisable
from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.data.store.stored import StoredDataset
from drol.data.trajectory_rows import check_finite
from drol.machine import free_memory
from drol.transition import Spec, Transition

PIECE_ROWS = 1 << 16  # rows of `last` read at once
READ_AHEAD = 2  # chunks that wait for the device
COLUMNS_SHARE = 8  # the columns (rewards and ends) are loaded if they take at most 1 / 8 of the free memory


class OnDiskDataset:
    """N transitions laid out as in `Dataset`, in arrays that may be larger than memory. It implements `Transitions`.

    Args:
        arrays: The arrays of `ROW_ARRAYS`, mapped from files.
        fingerprint: The result of `Dataset.fingerprint` for the same values.
        standardisation: How observations are standardised as they are read; None: not at all.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        fingerprint: str,
        standardisation: Standardisation | None = None,
    ):
        self.stored = load_columns(arrays)
        self.pages = {name: Pages(array) for name, array in self.stored.items() if isinstance(array, np.memmap)}
        self.arrays = {name: np.asarray(array) for name, array in self.stored.items()}
        self.stored_fingerprint = fingerprint
        self.standardisation = standardisation
        last = self.arrays["last"]
        ends = [first + np.flatnonzero(last[first : first + PIECE_ROWS]) for first in range(0, len(last), PIECE_ROWS)]
        ends = np.concatenate(ends)
        self.size = len(last) - len(ends)
        self.transitions_before_end = ends - np.arange(len(ends))

    @classmethod
    def open(cls, stored: StoredDataset, split: str) -> Self:
        """Open a split of an imported dataset; check sizes, ends and rewards (`drol data check` checks every byte)."""
        arrays = stored.arrays(split)
        for name in ("reward", "continues"):
            check_finite(name, arrays[name], arrays["last"])
        return cls(arrays, stored.manifest["splits"][split]["fingerprint"])

    @property
    def spec(self) -> Spec:
        return Spec(self.arrays["observation"].shape[1:], self.arrays["action"].shape[1])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def on_device(self) -> Dataset | None:
        return None

    def fingerprint(self) -> str:
        """Return the fingerprint that was recorded when the data were written; it equals `Dataset.fingerprint`."""
        return self.stored_fingerprint

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and standard deviation of all observations, in one pass; raise `InputError` for images."""
        check_standardisable(self.arrays["observation"])
        return observation_moments(self.arrays["observation"])

    def standardised(self, standardisation: Standardisation) -> "OnDiskDataset":
        """Return the same transitions, with observations standardised when read; raise `InputError` for images."""
        check_standardisable(self.arrays["observation"])
        return OnDiskDataset(self.stored, self.stored_fingerprint, standardisation)

    def take(self, index: np.ndarray | Array) -> Transition:
        """Return the transitions at these indices [...], as NumPy arrays [..., ...]."""
        index = np.asarray(index)
        flat = index.reshape(-1)
        order = np.argsort(flat, kind="stable")  # files are read fastest from front to back
        row = flat[order] + np.searchsorted(self.transitions_before_end, flat[order], side="right")
        for pages in self.pages.values():
            pages.prefetch(row, 2)

        def gather(name: str, rows: np.ndarray) -> np.ndarray:
            array = self.arrays[name]
            out = np.empty((len(rows), *array.shape[1:]), array.dtype)
            out[order] = array[rows]
            if name == "observation" and self.standardisation is not None:
                out = np.asarray(self.standardisation(jnp.asarray(out)))  # jax gives the same bits as `Dataset`
            return out.reshape(*index.shape, *array.shape[1:])

        batch: Any = Transition(
            observation=gather("observation", row),  # type: ignore[arg-type]
            action=gather("action", row),  # type: ignore[arg-type]
            reward=gather("reward", row),  # type: ignore[arg-type]
            continues=gather("continues", row),  # type: ignore[arg-type]
            next_observation=gather("observation", row + 1),  # type: ignore[arg-type]
            next_action=gather("action", row + 1),  # type: ignore[arg-type]
            next_action_known=np.float32(1) - gather("last", row + 1),  # type: ignore[arg-type]
        )
        return batch

    def leading(self, rows: int) -> Dataset:
        """Load the leading complete trajectories, up to `rows` rows but at least one trajectory."""
        ends = self.transitions_before_end + np.arange(len(self.transitions_before_end))
        fitting = max(int(np.searchsorted(ends, rows)), 1)
        kept = slice(int(ends[fitting - 1]) + 1)
        rows_kept: dict[str, Any] = {name: np.array(array[kept]) for name, array in self.arrays.items()}
        dataset = Dataset.from_rows(**rows_kept, overwrite=True)
        return dataset if self.standardisation is None else dataset.standardised(self.standardisation)

    def some(self, count: int) -> Dataset:
        """Load `count` evenly spaced transitions, or all if there are fewer; their next actions are not loaded."""
        batch = self.take(np.linspace(0, self.size - 1, min(count, self.size)).astype(np.int64))
        second = np.arange(2 * len(batch.action)) % 2 == 1  # each transition becomes an episode of two rows

        def twice(array: Any) -> np.ndarray:
            return np.repeat(np.asarray(array), 2, 0)

        observation = twice(batch.observation)
        observation[second] = batch.next_observation
        return Dataset.from_rows(observation, twice(batch.action), twice(batch.reward), twice(batch.continues), second)

    def sample(self, key: Array, batch_size: int) -> Transition:
        """Return the batch that `Dataset.sample` returns for this key."""
        return self.take(draw(key, self.size, batch_size))

    def sample_chunk(self, keys: Array, first_step: int, count: int, batch_size: int) -> Transition:
        """Return the batches [count, batch, ...] of `count` updates from `first_step` on, as `train_chunk` draws them.

        For the keys [seed] of several seeds, return [seed, count, batch, ...].
        """
        return self.take(draw_chunk(keys, first_step, self.size, count, batch_size))

    def stream(
        self, keys: Array, first_step: int, last_step: int, batch_size: int, chunk: int
    ) -> Iterator[tuple[int, int, Transition]]:
        """Yield the batches of the updates `first_step` to `last_step`; a thread reads them ahead to the device.

        Yields (first step, number of updates, batches). Each item has batches for `chunk` updates, so that the function
        that takes them is compiled once. The caller must not use the batches beyond the number of updates.
        """
        waiting: queue.Queue[Any] = queue.Queue(READ_AHEAD)
        stopped = threading.Event()

        def offer(item: Any) -> None:
            while not stopped.is_set():
                try:
                    return waiting.put(item, timeout=0.1)
                except queue.Full:
                    continue

        def read() -> None:
            try:
                for first in range(first_step, last_step + 1, chunk):
                    if stopped.is_set():
                        return
                    batches = jax.device_put(self.sample_chunk(keys, first, chunk, batch_size))
                    offer((first, min(chunk, last_step + 1 - first), batches))
                offer(None)
            except BaseException as error:  # re-raised in the thread that uses the batches
                offer(error)

        thread = threading.Thread(target=read, name="reading batches", daemon=True)
        thread.start()
        try:
            while (item := waiting.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            thread.join()


def load_columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays, with the columns [rows] loaded if they take little memory.

    On disk, reading one number of a column takes as long as reading an observation: each read fetches a page.
    """
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    free = free_memory()
    if free is None or sum(array.nbytes for array in columns.values()) > free // COLUMNS_SHARE:
        return dict(arrays)
    return {**arrays, **{name: np.array(array) for name, array in columns.items()}}


class Pages:
    """The pages of the file of a mapped array."""

    def __init__(self, array: np.memmap):
        self.row_bytes, self.offset = array[:1].nbytes, array.offset
        self.file = -1
        if hasattr(mmap, "MADV_RANDOM") and isinstance(array.base, mmap.mmap):
            array.base.madvise(mmap.MADV_RANDOM)  # otherwise the system also reads many pages around each
        if hasattr(os, "posix_fadvise") and array.filename is not None:
            self.file = os.open(array.filename, os.O_RDONLY)
            weakref.finalize(self, os.close, self.file)

    def prefetch(self, row: np.ndarray, count: int) -> None:
        """Ask the system to read `count` rows, starting at each index in `row`.

        A disk is fastest if all requests come at once. `row` must be in ascending order.
        """
        if self.file < 0 or not len(row):
            return
        begin = (self.offset + row * self.row_bytes) // mmap.PAGESIZE
        end = (self.offset + (row + count) * self.row_bytes - 1) // mmap.PAGESIZE + 1
        new = np.concatenate(([True], end[1:] > end[:-1]))  # the other rows lie on pages that are already requested
        for first, after in zip(begin[new].tolist(), end[new].tolist(), strict=True):
            os.posix_fadvise(self.file, first * mmap.PAGESIZE, (after - first) * mmap.PAGESIZE, os.POSIX_FADV_WILLNEED)


@functools.partial(jax.jit, static_argnames="batch_size")
def draw(key: Array, size: int, batch_size: int) -> Array:
    """Return the indices [batch] of the transitions that `Dataset.sample` draws."""
    return jax.random.randint(key, (batch_size,), 0, size)


@functools.partial(jax.jit, static_argnames=("count", "batch_size"))
def draw_chunk(keys: Array, first_step: int, size: int, count: int, batch_size: int) -> Array:
    """Return the indices [seed, count, batch] that `train_chunk` draws; [count, batch] for a single key."""

    def draw_one(key: Array, step: Array) -> Array:
        batch_key, _ = jax.random.split(jax.random.fold_in(key, step))
        return draw(batch_key, size, batch_size)

    steps = first_step + jnp.arange(count)
    over_steps = jax.vmap(draw_one, in_axes=(None, 0))
    return over_steps(keys, steps) if keys.ndim == 0 else jax.vmap(over_steps, in_axes=(0, None))(keys, steps)
