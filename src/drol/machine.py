"""Cores and memory that this process may use, and arrays that jax can use without a copy."""

import contextlib
import math
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PROGRAM_BYTES = 700_000_000  # memory of compiling and keeping the programs of a run
EVALUATION_BYTES = 550_000_000  # peak memory of an offline evaluation
DATA_COPIES = 2.2  # memory per byte of data: the arrays, the standardised arrays, and temporaries
JAX_ADDRESSES = 1_600_000_000  # bytes of address space of a process with jax; most of it is unused
ALIGNMENT = 64  # bytes; jax on a CPU uses arrays with this alignment without copying them


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an empty array that jax can use without a copy."""
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)


def free_memory() -> int | None:
    """Return the bytes that this process can still allocate, by system and control groups; None if unknown."""
    amounts = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                amounts.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    amounts += group_memory(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    amounts += address_space()
    return max(0, min(amounts)) if amounts else None


def leaves_room(nbytes: int, free: int | None) -> bool:
    """Return whether training on `nbytes` of data in memory fits into the free memory."""
    return free is None or DATA_COPIES * nbytes + PROGRAM_BYTES + EVALUATION_BYTES <= free


def address_space() -> list[int]:
    """Return the address space that `ulimit -v` leaves after jax is loaded; the list is empty without a limit."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        used = 0
    return [] if most == resource.RLIM_INFINITY else [most - max(used, JAX_ADDRESSES)]


def group_memory(membership: Path, root: Path) -> list[int]:
    """Return the memory left by each control group of this process (a container, a cluster job) and its parents.

    Cached files count as free, because the system reclaims them.
    """
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return []
    amounts = []
    for _, controllers, path in lines:
        if controllers == "":  # version 2
            top, most, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, most, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = top / path.strip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(top):
                with contextlib.suppress(OSError, ValueError, KeyError):  # ValueError: no limit is the word "max"
                    held = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    files = int(held["inactive_file"]) + int(held["active_file"])
                    amounts.append(int((folder / most).read_text()) - int((folder / used).read_text()) + files)
    return amounts


def session_memory() -> dict[int, int]:
    """Return the memory in bytes of each session by its id; empty if unknown.

    Shared memory counts for each process, so this is an upper bound.
    """
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # OSError: the process has ended meanwhile
            fields = path.read_text(errors="replace").rpartition(")")[2].split()  # a name may contain any character
            session, pages = int(fields[3]), int(fields[21])
            found[session] = found.get(session, 0) + pages * os.sysconf("SC_PAGE_SIZE")
    return found


def bytes_in_words(count: int) -> str:
    """Format a number of bytes: 1.25 GB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 100 * size else f"{count / size:,.0f} {unit}"
    return f"{count} bytes"
