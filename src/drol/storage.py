"""Atomic writes of files and folders, and locks."""

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from drol.errors import InputError

AGAIN = "then give the same command again"
ADVICE = {  # for faults of a disk
    errno.ENOSPC: f"make room there, {AGAIN}",
    errno.EDQUOT: f"make room there or ask for a larger quota, {AGAIN}",
    errno.EFBIG: f"allow larger files (see `ulimit -f`), {AGAIN}",
    errno.EROFS: "choose a folder that can be written",
}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Set the path of an `OSError` to the file being written; the system reports none, or a temporary file."""
    try:
        yield
    except OSError as error:
        if error.filename is None or error.errno in ADVICE:
            error.filename = str(path)
        raise


def describe_fault(error: OSError) -> str:
    """Describe a system error in one line: the path, what is wrong, what to do."""
    if error.errno not in ADVICE or error.filename is None:
        return str(error)
    return f"{error.filename} cannot be written ({error.strerror}); {ADVICE[error.errno]}"


LOCK_ATTEMPTS, LOCK_SECONDS = 5, 0.02  # retries: `is_held` of another process takes the lock for a moment


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and sync it to disk."""
    with writing(path), path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that renames survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file atomically: readers see the old content or the new."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with writing(path):
        try:
            write_synced(partial, data.encode() if isinstance(data, str) else data)
            partial.rename(path)
        except BaseException:  # a signal too
            partial.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def append_whole(path: Path, text: str) -> None:
    """Append text to a file; an `OSError` leaves the file unchanged."""
    with writing(path), path.open("ab", buffering=0) as file:
        size = file.tell()
        try:
            rest = memoryview(text.encode())
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(size)
            raise


def replace_folder(partial: Path, folder: Path) -> None:
    """Rename a finished folder to its final name, replacing an existing folder.

    A kill between the two renames leaves the old folder as `.NAME.old`; `recover_folder` restores it.
    """
    old = folder.with_name(f".{folder.name}.old")
    sync_folder(partial)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    try:
        partial.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover_folder(folder: Path) -> None:
    """Undo an interrupted `replace_folder`; call it before the folder is used."""
    old = folder.with_name(f".{folder.name}.old")
    if old.is_dir() and not folder.exists():
        old.rename(folder)
    else:
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def exclusive(path: Path, refusal: str | None) -> Iterator[int]:
    """Lock a file or folder for this process; raise `InputError(refusal)` if another process has the lock.

    If `refusal` is None, wait for the lock.

    Yields the descriptor. Files are opened for reading and writing, because network file systems require it.
    """
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, access | os.O_NOFOLLOW, 0o644)
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if refusal is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if refusal is None or attempt == LOCK_ATTEMPTS - 1:
                os.close(descriptor)
                if refusal is None:
                    raise
                raise InputError(refusal) from error
            time.sleep(LOCK_SECONDS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether a process holds a lock; checking never makes another process fail to acquire it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:  # it does not exist
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
