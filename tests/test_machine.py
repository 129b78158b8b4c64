import os
import resource

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drol.machine import (
    ALIGNMENT,
    JAX_ADDRESSES,
    address_space,
    aligned,
    available_cores,
    bytes_in_words,
    free_memory,
    group_memory,
    leaves_room,
)


@pytest.mark.parametrize(
    ("line", "top", "names"),
    [
        ("0::/jobs/mine", "", ("memory.max", "memory.current")),
        ("4:memory:/jobs/mine", "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
def test_the_limits_of_a_job_and_of_all_around_it_are_seen(tmp_path, line, top, names):
    (tmp_path / "membership").write_text(f"1:cpu:/elsewhere\n{line}\n")
    for folder, most, used in (("jobs", "1000", "300"), ("jobs/mine", "max", "200"), ("jobs/other", "1", "1")):
        group = tmp_path / "root" / top / folder
        group.mkdir(parents=True)
        (group / names[0]).write_text(f"{most}\n")
        (group / names[1]).write_text(f"{used}\n")
        (group / "memory.stat").write_text("anon 150\ninactive_file 30\nactive_file 20\n")
    assert group_memory(tmp_path / "membership", tmp_path / "root") == [1000 - 300 + 50]
    assert group_memory(tmp_path / "absent", tmp_path / "root") == []


def test_the_free_memory_is_known_on_linux():
    free = free_memory()
    assert free is None or 0 <= free < 2**60


def test_a_limit_of_the_address_space_counts_and_so_does_jax_before_it_is_there(monkeypatch):
    def limit(count):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (count, count))

    limit(resource.RLIM_INFINITY)
    assert address_space() == []
    limit(10**15)
    assert 10**14 < address_space()[0] <= 10**15 - JAX_ADDRESSES
    limit(JAX_ADDRESSES // 2)
    assert free_memory() == 0


def test_data_in_memory_must_leave_room_for_training():
    assert leaves_room(10**9, None)
    assert leaves_room(10**9, 4 * 10**9)
    assert not leaves_room(10**9, 3 * 10**9)
    assert not leaves_room(0, 10**9)


def test_at_least_one_core_is_available():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


@given(shape=st.lists(st.integers(0, 5), max_size=3), dtype=st.sampled_from(["f4", "f8", "?", "u1", "i8"]))
def test_aligned_memory_has_the_shape_and_type_that_were_asked_for(shape, dtype):
    array = aligned(shape, np.dtype(dtype))
    assert array.shape == tuple(shape)
    assert array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.size == 0 or array.ctypes.data % ALIGNMENT == 0


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1 kB"),
        (1_250_000_000, "1.25 GB"),
        (12_345_678, "12.3 MB"),
        (123_456_789, "123 MB"),
        (2_345_000_000_000, "2,345 GB"),
    ],
)
def test_bytes_are_written_as_people_write_them(count, words):
    assert bytes_in_words(count) == words
