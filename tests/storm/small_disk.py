"""A disk of a few megabytes in memory, where one can be mounted, and a way to fill it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = 32_000_000


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small disk on a folder; yield whether that was allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "storm", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


@contextlib.contextmanager
def filled(folder: Path, free: int) -> Iterator[None]:
    """Fill a disk except for the given number of bytes, until the context ends."""
    path = folder / "filling"
    try:
        with path.open("wb") as file, contextlib.suppress(OSError):
            room = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            os.posix_fallocate(file.fileno(), 0, max(1, room - free))
        yield
    finally:
        path.unlink(missing_ok=True)
