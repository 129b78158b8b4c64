"""What this process may use of the machine: cores, memory, and memory that jax takes over without a copy."""

import contextlib
import math
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PROGRAM_BYTES = 700_000_000  # that jax takes to compile the programs of a run and to keep them
EVALUATION_BYTES = 550_000_000  # that an evaluation by data alone takes for a moment
DATA_COPIES = 2.2  # of data in memory: the arrays, the standardised ones, and what is made on the way
JAX_ADDRESSES = 1_600_000_000  # bytes of addresses that a process with jax and its threads has, most of them unused
ALIGNMENT = 64  # bytes; jax on a CPU takes over an array that is aligned so without copying it


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an empty array whose memory jax can take over."""
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)


def free_memory() -> int | None:
    """Return the bytes that this process may still take, by the system and by its control groups; None if unknown."""
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
    """Return whether data of so many bytes, in memory, leave enough of what is free to train on them."""
    return free is None or DATA_COPIES * nbytes + PROGRAM_BYTES + EVALUATION_BYTES <= free


def address_space() -> list[int]:
    """Return what `ulimit -v` leaves beside jax, which counts before it is there; the list is empty without a limit."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        used = 0
    return [] if most == resource.RLIM_INFINITY else [most - max(used, JAX_ADDRESSES)]


def group_memory(membership: Path, root: Path) -> list[int]:
    """Return what the control groups of this process (a cluster's job, a container) and those around them leave to it.

    Cached files of a group count as free: the system gives their memory back when it is needed.
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
    """Return the bytes that the processes of each session hold, by the session's number; nothing if unknown.

    Memory that processes of a session share counts for each of them, so this is rather too much than too little.
    """
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # OSError: the process has ended meanwhile
            fields = path.read_text(errors="replace").rpartition(")")[2].split()  # a name may hold anything
            session, pages = int(fields[3]), int(fields[21])
            found[session] = found.get(session, 0) + pages * os.sysconf("SC_PAGE_SIZE")
    return found


def bytes_in_words(count: int) -> str:
    """Return a number of bytes as people write it: 1.25 GB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 100 * size else f"{count / size:,.0f} {unit}"
    return f"{count} bytes"
