"""Claim cores for independent jobs on one machine; the system releases the claims when a process ends."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from drol.errors import InputError
from drol.storage import exclusive


def claims_folder() -> Path:
    """Return the folder of this user's core locks on this machine."""
    return Path(tempfile.gettempdir()) / f"drol-cores-{os.getuid()}"


def usable_cores() -> list[int]:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]


@contextlib.contextmanager
def claimed_cores(count: int) -> Iterator[set[int]]:
    """Lock `count` cores that no other job on this machine has locked; if too few are free, share some of the others.

    A claim is a file lock, so the system releases it when the process ends for any reason.
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
    """Try to lock one core until the stack is closed; return whether that succeeded."""
    folder = claims_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid():  # another user made it: every user may write to the parent folder
            return False
        stack.enter_context(exclusive(folder / str(core), "another job has it"))
    except (OSError, InputError):
        return False
    return True
