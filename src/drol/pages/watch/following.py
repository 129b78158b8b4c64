"""A file of rows that is read as it grows: each look reads what was added, and never more than it may."""

import os
import stat
from pathlib import Path
from typing import Any

from drol.runs.row_files import read_line

LARGEST_READ = 1 << 20  # bytes of one file that are read at once; a longer line is no row


class FollowedFile:
    """A file that others write.

    Attributes:
        bad: Lines that were no rows.
        behind: Whether there is more to read.
    """

    def __init__(self, path: Path, kind: type[Any]):
        self.path, self.kind = path, kind
        self.begin()

    def begin(self) -> None:
        """Forget everything, to read the file from its beginning."""
        self.offset, self.number, self.bad = 0, 0, 0
        self.identity: tuple[int, int] | None = None
        self.skipping = self.behind = False

    def read(self, budget: int) -> tuple[list[Any], int, bool]:
        """Return the rows that were added, the bytes that were read, and whether the file begins anew.

        A last line that is not whole yet waits for the next look. A file that was replaced or cut is read from its
        beginning; one that vanished has no rows.
        """
        status = regular(self.path)
        identity = (status.st_dev, status.st_ino) if status else None
        anew = self.identity is not None and (identity != self.identity or (status and status.st_size < self.offset))
        if anew:
            self.begin()
        if status is None or status.st_size == self.offset:
            self.identity, self.behind = identity, False
            return [], 0, bool(anew)
        content = read_part(self.path, self.offset, max(1, min(budget, LARGEST_READ)))
        self.identity, self.behind = identity, self.offset + len(content) < status.st_size
        return self.rows_in(content, full=len(content) >= LARGEST_READ), len(content), bool(anew)

    def rows_in(self, content: bytes, full: bool) -> list[Any]:
        """Return the rows of whole lines; a line that fills all that is read at once is passed over to its end."""
        end = content.rfind(b"\n") + 1
        if not end:
            if full or self.skipping:
                self.bad += not self.skipping
                self.skipping = True
                self.offset += len(content)
            return []
        self.offset += end
        texts = content[:end].split(b"\n")[:-1]
        if self.skipping:  # the end of the long line
            texts, self.skipping = texts[1:], False
        rows = []
        for text in texts:
            self.number += 1
            row = read_line(self.number, text, self.kind).row
            self.bad += row is None
            if row is not None:
                rows.append(row)
        return rows


def regular(path: Path) -> os.stat_result | None:
    """Return what the system says of a file; None for what is not there or is a link, a pipe or a folder."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def read_part(path: Path, offset: int, most: int) -> bytes:
    """Return a part of a regular file; nothing if it is none, or vanished."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, most, offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)
