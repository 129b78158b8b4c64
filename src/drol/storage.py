"""Files that are whole or not there at all, whatever happens while they are written."""

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
    """Give an `OSError` the path that is being written: the system names none, or that of a partial file."""
    try:
        yield
    except OSError as error:
        if error.filename is None or error.errno in ADVICE:
            error.filename = str(path)
        raise


def describe_fault(error: OSError) -> str:
    """Return an error of the system in one line: the path, what is wrong with it, what to do."""
    if error.errno not in ADVICE or error.filename is None:
        return str(error)
    return f"{error.filename} cannot be written ({error.strerror}); {ADVICE[error.errno]}"


LOCK_ATTEMPTS, LOCK_SECONDS = 5, 0.02  # a lock that somebody only looks at, by `is_held`, is free again at once


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with writing(path), path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, so that a renaming lasts."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file under another name and rename it, so that a reader sees the old content or the new."""
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
    """Write text at the end of a file; an `OSError` leaves the file as it was."""
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
    """Give a finished folder its name; one that has the name already is put aside first and removed last.

    A kill between the two renamings leaves the old folder as `.NAME.old`; `recover_folder` gives it back its name.
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
    """Undo what a kill in the middle of `replace_folder` left; call it before the folder is looked for."""
    old = folder.with_name(f".{folder.name}.old")
    if old.is_dir() and not folder.exists():
        old.rename(folder)
    else:
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def exclusive(path: Path, refusal: str | None) -> Iterator[int]:
    """Hold a lock file, or a folder, for this process alone; raise `InputError(refusal)` if another process has it.

    Without a refusal, wait until it is free.

    Yields the descriptor; a file is open for reading and writing, as network file systems want it for such a lock.
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
    """Return whether a process holds a lock file. To look changes nothing, and makes nobody who wants it give up."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:  # nobody made it
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
