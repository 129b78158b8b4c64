"""A dataset on disk gives bit for bit the batches of the same dataset in memory."""

import mmap
import os
import threading
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import write_dataset
from toys import random_rows

from drol.data import on_disk
from drol.data.dataset import Dataset
from drol.data.on_disk import OnDiskDataset, Pages
from drol.data.standardisation import Standardisation
from drol.data.store.stored import StoredDataset
from drol.errors import InputError

LENGTHS = (7, 1, 30, 2, 19)
BATCH = 16


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("mapped")


@pytest.fixture(scope="module")
def both(root):
    """The same rows on disk and in memory."""
    rows = random_rows(LENGTHS)
    return OnDiskDataset.open(write_dataset(root, rows, validation=0), "train"), Dataset.from_rows(**rows)


def assert_equal(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_it_is_the_same_dataset(both):
    mapped, memory = both
    assert mapped.size == memory.size == sum(LENGTHS)
    assert mapped.spec == memory.spec
    assert mapped.fingerprint() == memory.fingerprint()
    assert mapped.on_device is None
    assert_equal(mapped.take(np.arange(mapped.size)), memory.take(jnp.arange(memory.size)))
    assert_equal(mapped.sample(jax.random.key(3), BATCH), memory.sample(jax.random.key(3), BATCH))


@settings(deadline=None, max_examples=50)
@given(
    rows=st.lists(st.integers(0, 998), min_size=1, max_size=30).map(sorted),
    size=st.sampled_from([1, 3, 700, 1024, 5000]),
    count=st.integers(1, 2),
)
def test_every_page_of_the_rows_is_requested_once(tmp_path_factory, rows, size, count):
    path = tmp_path_factory.mktemp("pages") / "array.npy"
    np.save(path, np.zeros((1000, size), np.uint8))
    pages = Pages(np.load(path, mmap_mode="r"))
    requests = []
    with mock.patch.object(os, "posix_fadvise", lambda file, *request: requests.append(request)):
        pages.prefetch(np.asarray(rows), count)
    found = set()
    for start, length, _ in requests:
        found |= set(range(start // mmap.PAGESIZE, -(-(start + length) // mmap.PAGESIZE)))
    bytes_of_rows = {128 + byte for row in rows for byte in (row * size, (row + count) * size - 1)}
    assert {byte // mmap.PAGESIZE for byte in bytes_of_rows} <= found
    assert all(start % mmap.PAGESIZE == 0 and advice == os.POSIX_FADV_WILLNEED for start, _, advice in requests)
    assert len(requests) <= len(rows)


def test_batches_do_not_depend_on_what_is_held_in_memory(both, root, monkeypatch):
    (mapped, memory), stored = both, StoredDataset.open("mine", root)
    monkeypatch.setattr(on_disk, "free_memory", lambda: 0)
    small = OnDiskDataset(stored.arrays("train"), mapped.fingerprint())
    assert isinstance(small.stored["reward"], np.memmap)
    assert not isinstance(mapped.stored["reward"], np.memmap)
    assert_equal(small.take(np.arange(mapped.size)), memory.take(jnp.arange(memory.size)))


def test_pictures_on_disk_are_those_in_memory(tmp_path):
    rows = random_rows(LENGTHS)
    rows["observation"] = np.random.default_rng(0).integers(0, 256, (len(rows["last"]), 8, 8, 3), np.uint8)
    mapped = OnDiskDataset.open(write_dataset(tmp_path, rows, validation=0), "train")
    memory = Dataset.from_rows(**rows)
    assert mapped.spec == memory.spec
    assert mapped.fingerprint() == memory.fingerprint()
    assert_equal(mapped.sample(jax.random.key(3), BATCH), memory.sample(jax.random.key(3), BATCH))
    assert mapped.some(10).spec == memory.spec
    for call in (mapped.moments, lambda: mapped.standardised(Standardisation.identity(mapped.spec))):
        with pytest.raises(InputError, match="images cannot be standardised"):
            call()


def drawn_in_training(memory, key, step):
    """As `train_chunk` does it."""
    batch_key, _ = jax.random.split(jax.random.fold_in(key, step))
    return memory.sample(batch_key, BATCH)


def test_chunks_are_the_batches_of_training(both):
    mapped, memory = both
    keys = jnp.stack([jax.random.key(seed) for seed in (0, 7)])
    chunk = mapped.sample_chunk(keys, 5, 3, BATCH)
    assert chunk.observation.shape == (2, 3, BATCH, 3)
    for seed in range(2):
        alone = mapped.sample_chunk(keys[seed], 5, 3, BATCH)
        for number in range(3):
            expected = drawn_in_training(memory, keys[seed], 5 + number)
            assert_equal(jax.tree.map(lambda leaf, s=seed, n=number: leaf[s, n], chunk), expected)
            assert_equal(jax.tree.map(lambda leaf, n=number: leaf[n], alone), expected)


def test_the_stream_covers_every_update_once(both):
    mapped, memory = both
    key = jax.random.key(1)
    steps = []
    for first, count, batches in mapped.stream(key, 3, 12, BATCH, 4):
        assert batches.reward.shape == (4, BATCH)
        for number in range(count):
            steps.append(first + number)
            assert_equal(
                jax.tree.map(lambda leaf, n=number: leaf[n], batches), drawn_in_training(memory, key, first + number)
            )
    assert steps == list(range(3, 13))


def test_a_stream_that_is_left_ends_its_thread(both):
    stream = both[0].stream(jax.random.key(0), 1, 10_000, BATCH, 4)
    next(stream)
    stream.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "reading batches"]


def test_what_goes_wrong_while_reading_is_raised(both, monkeypatch):
    def broken(*arguments):
        raise OSError("the disk is gone")

    monkeypatch.setattr(both[0], "take", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        list(both[0].stream(jax.random.key(0), 1, 10, BATCH, 4))


def test_observations_are_standardised_as_they_are_read(both):
    mapped, memory = both
    mean, deviation = mapped.moments()
    for found, expected in zip((mean, deviation), memory.moments(), strict=True):
        np.testing.assert_array_equal(found, expected)
    index = np.arange(mapped.size)
    standardisation = Standardisation.from_moments(mean, deviation, 0.3)
    found, expected = mapped.standardised(standardisation), memory.standardised(standardisation)
    assert_equal(found.take(index), expected.take(index))
    assert_equal(found.leading(10).take(index[:7]), expected.take(index[:7]))


def test_some_transitions_in_memory_are_those_of_the_file(both):
    mapped, memory = both
    few = mapped.some(5)
    assert few.size == 5
    expected = memory.take(jnp.asarray([0, 14, 29, 43, 58]))
    found = few.take(jnp.arange(5))
    for name in ("observation", "action", "reward", "continues", "next_observation"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert not found.next_action_known.any()
    assert mapped.some(1000).size == memory.size


def test_the_first_trajectories_in_memory_are_whole(both):
    mapped, memory = both
    for rows, size in ((1, 7), (10, 8), (40, 8), (41, 38), (10_000, sum(LENGTHS))):
        found = mapped.leading(rows)
        assert found.size == size
        assert_equal(found.take(jnp.arange(size - 1)), memory.take(jnp.arange(size - 1)))
        assert found.last[-1]
