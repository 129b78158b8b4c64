"""Cores for jobs that know nothing of each other: each claims some of its machine, and the system gives them back."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from drol.errors import InputError
from drol.storage import exclusive


def claims_folder() -> Path:
    """Return where this machine notes who has which core; each user has a folder."""
    return Path(tempfile.gettempdir()) / f"drol-cores-{os.getuid()}"


def usable_cores() -> list[int]:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]


@contextlib.contextmanager
def claimed_cores(count: int) -> Iterator[set[int]]:
    """Hold so many cores that no other job on this machine holds; where too few are free, share some of them.

    A claim is a lock of a file, which ends with the process that holds it, however it ends.
    """
    usable = usable_cores()
    with contextlib.ExitStack() as stack:
        found: set[int] = set()
        for core in usable:
            if len(found) < count and claim(core, stack):
                found.add(core)
        missing = count - len(found)
        yield found | {*[core for core in usable if core not in found][: max(0, missing)]}


def claim(core: int, stack: contextlib.ExitStack) -> bool:
    """Try to hold one core until the stack is closed."""
    folder = claims_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid():  # somebody else's, in a folder that all may write to
            return False
        stack.enter_context(exclusive(folder / str(core), "another job has it"))
    except (OSError, InputError):
        return False
    return True
