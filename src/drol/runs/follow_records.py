"""Follow a file of rows while another process writes it; each read returns the new rows."""

import os
import stat
from pathlib import Path
from typing import Any

from drol.runs.record_files import read_line

LARGEST_READ = 1 << 20  # maximum bytes per read; a longer line is skipped


class FollowedFile:
    """A file of rows that another process writes.

    Attributes:
        bad: The number of malformed lines.
        behind: Whether the file has unread bytes.
        modified: The modification time of the file at the last read; 0 if there is no file.
    """

    def __init__(self, path: Path, kind: type[Any]):
        self.path, self.kind = path, kind
        self.begin()

    def begin(self) -> None:
        """Read the file from its beginning again."""
        self.offset, self.number, self.bad, self.modified = 0, 0, 0, 0.0
        self.identity: tuple[int, int] | None = None
        self.skipping = self.behind = False

    def read(self, budget: int = LARGEST_READ) -> tuple[list[Any], int, bool]:
        """Return the new rows, the number of bytes read, and whether reading restarted at the beginning of the file.

        A last line without a line break is left for the next read. A file that was replaced or truncated is read from
        its beginning. A missing file has no rows. Links, pipes and folders are not read.
        """
        status = regular(self.path)
        identity = (status.st_dev, status.st_ino) if status else None
        anew = self.identity is not None and (identity != self.identity or (status and status.st_size < self.offset))
        if anew:
            self.begin()
        self.modified = status.st_mtime if status else 0.0
        if status is None or status.st_size == self.offset:
            self.identity, self.behind = identity, False
            return [], 0, bool(anew)
        content = read_part(self.path, self.offset, max(1, min(budget, LARGEST_READ)))
        self.identity, self.behind = identity, self.offset + len(content) < status.st_size
        return self.rows_in(content, full=len(content) >= LARGEST_READ), len(content), bool(anew)

    def read_all(self) -> list[Any]:
        """Return all new rows; if the file was replaced, all of its rows."""
        rows, _, _ = self.read()
        while self.behind:
            more, count, _ = self.read()
            rows += more
            if not count:  # the file vanished
                break
        return rows

    def rows_in(self, content: bytes, full: bool) -> list[Any]:
        """Return the rows of complete lines; skip a line that is longer than one read, up to its end."""
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
    """Return the status of a regular file; None for a missing file, a link, a pipe or a folder."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def read_part(path: Path, offset: int, most: int) -> bytes:
    """Return a part of a regular file; nothing if it vanished or is not a regular file."""
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
