"""Full disks: a limit on the size of files, and a small separate file system."""

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def largest_file(count: int) -> Iterator[None]:
    """Limit the size of files; larger writes fail with "File too large"."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """Mount a file system in memory; skip the test where that is not allowed."""
    folder.mkdir()
    if os.getuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Write until nothing more fits."""
    with contextlib.suppress(OSError), (folder / "ballast").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def leftovers(folder: Path) -> list[Path]:
    """Return the files that a failed write may leave."""
    return [path for path in folder.rglob(".*") if path.name != ".lock"]
