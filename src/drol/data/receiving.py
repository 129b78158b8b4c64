"""Request a file, or what is missing of it, until it is complete; never join the halves of two versions.

NAME.part             the bytes that were received so far
NAME.part.version     what the server said of their version: its ETag, or the date of the last change
"""

import errno
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from drol.errors import InputError
from drol.storage import write_whole

CHUNK_BYTES = 1 << 18
DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
LONGEST_SECONDS = 3600
MIN_BYTES = 1024  # less than this in `stall_seconds` is a stall
VERSION = re.compile(r'"[\x21\x23-\x7e]{0,200}"|[A-Z][a-z]{2}, [\w :]{10,30}')  # an ETag that is not weak, or a date

Advance = Callable[[int, int | None], None]  # takes the bytes so far and, if known, the bytes in all


@dataclass(frozen=True)
class Patience:
    """Waiting times for a server, and the number of attempts."""

    connect_seconds: float = 1.8  # for all servers together, so that a missing network is reported within two seconds
    stall_seconds: float = 20.0
    attempts: int = 4  # at each address, counted since the last byte that was new
    pause_seconds: float = 1.0  # after the first of them; doubled each time

    def __post_init__(self) -> None:
        for seconds in (self.connect_seconds, self.stall_seconds):
            if not 0 < seconds <= LONGEST_SECONDS:
                raise InputError(f"a timeout of {seconds:g} s is not allowed; it must be above 0, to {LONGEST_SECONDS}")


class Broken(Exception):
    """An attempt failed; another may do better."""


class Refused(Exception):
    """An address will not give the file, however often it is tried."""


def receive_whole(
    address: str, stream: BinaryIO, part: Path, sum_is_known: bool, advance: Advance, patience: Patience
) -> None:
    """Request the file until it is complete; give up after some attempts that did not get further than before.

    Args:
        address: Its web address.
        stream: The partial file, open for reading and writing.
        part: Its path.
        sum_is_known: Whether the whole file is compared with a known sum afterwards; only then may bytes whose version
            nobody knows be completed.
        advance: Called with the bytes so far.
        patience: How long to wait and how often to try again.
    """
    best, failures = stream.seek(0, os.SEEK_END), 0
    while True:
        try:
            receive(address, stream, part, sum_is_known, advance, patience)
            return
        except (Broken, http.client.HTTPException, OSError) as error:
            if isinstance(error, OSError) and error.errno in DISK_FAULTS:
                raise InputError(f"cannot write {part}: {error.strerror}; it keeps what was fetched") from error
            size = stream.seek(0, os.SEEK_END)
            failures = 0 if size > best else failures + 1
            best = max(best, size)
            if failures >= patience.attempts:
                raise Broken(str(getattr(error, "reason", None) or error) or type(error).__name__) from error
            time.sleep(patience.pause_seconds * 2 ** max(0, failures - 1) if failures else 0)


def receive(
    address: str, stream: BinaryIO, part: Path, sum_is_known: bool, advance: Advance, patience: Patience
) -> None:
    """Request the missing bytes of the file once."""
    have, version = stream.seek(0, os.SEEK_END), read_version(part)
    if have and not version and not sum_is_known:
        have = 0  # they may be of another version than what the server has now, and nothing would show it
    headers = {"User-Agent": "drol", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": version} if version else {})
    try:
        response = opener().open(urllib.request.Request(address, headers=headers), timeout=patience.stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:  # there is nothing after what we have, or it is not the same file
                if total_length(error) == have:
                    return
                forget(stream, part)
                raise Broken("the partial file does not belong to it") from error
            if error.code in (408, 429) or error.code >= 500:
                raise Broken(f"it answers {error.code} {error.reason}") from error
            raise Refused(f"it answers {error.code} {error.reason}") from error
    except ValueError as error:
        raise Refused(f"it leads to something that is no address ({error})") from error
    with response:
        if address.startswith("https:") and not response.url.startswith("https:"):
            raise Refused(f"it leads to {response.url}, which is not encrypted")
        total = total_length(response) if response.status == 206 else response.length
        if have and response.status != 206:
            have = 0  # the server has another version, or does not know ranges
        if response.status == 206 and (
            range_start(response) != have or (have and version and version_of(response) not in (version, None))
        ):
            forget(stream, part)
            raise Broken("it answers with a part of another version")
        if not have:
            forget(stream, part)
            if new := version_of(response):
                write_whole(version_path(part), new)
        stream.seek(have)
        check_space(stream, have, total)
        copy(response, stream, have, total, advance, patience)


def version_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def read_version(part: Path) -> str | None:
    """Return the version of the bytes that were received before; None if nobody knows."""
    try:
        text = version_path(part).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return text if VERSION.fullmatch(text) else None


def version_of(response: Any) -> str | None:
    """Return what an answer says of the version of its file: the ETag unless it is weak, else the date of change."""
    found = (response.headers.get(name, "") for name in ("ETag", "Last-Modified"))
    return next((text for text in found if VERSION.fullmatch(text)), None)


def forget(stream: BinaryIO, part: Path) -> None:
    """Drop what was received, and its version."""
    stream.truncate(0)
    version_path(part).unlink(missing_ok=True)


def copy(response: Any, stream: BinaryIO, have: int, total: int | None, advance: Advance, patience: Patience) -> None:
    """Write an answer to the file; raise `Broken` if it stalls or ends early."""
    window_start, window_bytes = time.monotonic(), 0
    advance(have, total)
    while chunk := response.read1(CHUNK_BYTES):
        stream.write(chunk)
        have, window_bytes = have + len(chunk), window_bytes + len(chunk)
        advance(have, total)
        if time.monotonic() - window_start > patience.stall_seconds:
            if window_bytes < MIN_BYTES:
                raise Broken(f"it stalls at {have:,} bytes")
            window_start, window_bytes = time.monotonic(), 0
    stream.flush()
    if total is not None and have != total:
        raise Broken(f"it ends at {have:,} of {total:,} bytes")


def opener() -> urllib.request.OpenerDirector:
    """Return an opener that knows the web only: a redirection to a file or to ftp is not followed."""
    director = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        director.add_handler(handler())
    return director


def range_start(response: Any) -> int | None:
    """Return the first byte of a partial answer."""
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def total_length(response: Any) -> int | None:
    """Return the size of the whole file that a partial answer tells."""
    match = re.fullmatch(r"bytes (?:\*|\d+-\d+)/(\d+)", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def check_space(stream: BinaryIO, have: int, total: int | None) -> None:
    """Raise `Refused` if the disk cannot hold the rest of the file."""
    disk = os.fstatvfs(stream.fileno())
    free = disk.f_bavail * disk.f_frsize
    if total is not None and total - have > free:
        raise Refused(f"it has {total - have:,} bytes more, and {free:,} are free on the disk")
