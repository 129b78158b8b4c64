"""Fetch a file from the first of several addresses that gives it whole.

NAME.part             the bytes that were fetched so far; the next attempt requests the rest
NAME                  appears by renaming, once length, SHA-256 and content were found right
NAME.sha256           the sum, recorded on first use, which later copies must have (`sha256sum -c` reads it)
quarantine/NAME.*     files of the right length with wrong content
"""

import contextlib
import errno
import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from drol.data.reachability import find_reachable
from drol.errors import InputError
from drol.progress import Report
from drol.storage import exclusive, sync_folder, write_whole

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,200}")
SUM = re.compile(r"[0-9a-f]{64}")
CHUNK_BYTES = 1 << 18
DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
MIN_BYTES = 1024  # less than this in `stall_seconds` is a stall

Check = Callable[[Path], None]  # raises InputError for a file with wrong content
Advance = Callable[[int, int | None], None]  # takes the bytes so far and, if known, the bytes in all


@dataclass(frozen=True)
class Patience:
    """Waiting times for a server, and the number of attempts."""

    connect_seconds: float = 1.8  # for all servers together, so that a missing network is reported within two seconds
    stall_seconds: float = 20.0
    attempts: int = 4  # at each address, counted since the last byte that was new
    pause_seconds: float = 1.0  # after the first of them; doubled each time


class Broken(Exception):
    """An attempt failed; another may do better."""


class Refused(Exception):
    """An address will not give the file, however often it is tried."""


def download(
    name: str,
    folder: Path,
    addresses: Sequence[str],
    check: Check,
    report: Report | None = None,
    sha256: str | None = None,
    patience: Patience | None = None,
) -> Path:
    """Fetch a file from one of its addresses; a file that is there already is only verified.

    Args:
        name: The name of the file.
        folder: Where to put it.
        addresses: Web addresses of the file; the first that gives it whole is taken.
        check: Raises `InputError` for a file with wrong content.
        report: Called with the bytes so far.
        sha256: The published sum of the file, if it is known.
        patience: How long to wait and how often to try again.

    Returns:
        The path of the file.
    """
    patience = patience or Patience()

    def advance(done: int, total: int | None) -> None:
        if report:
            report(done, total, name)

    path = target_path(name, folder)
    for address in addresses:
        check_address(address)
    if path.is_file():
        try:
            verify(path, path, check, sha256)
            return path
        except InputError as error:
            moved = quarantine(path)
            problems = [f"{path} was bad ({error}) and is now {moved}"]
    else:
        problems = []
    reachable, unreachable = find_reachable(addresses, patience.connect_seconds)
    problems += unreachable
    if not reachable:
        raise InputError(
            f"{name} cannot be fetched: no server answers ({'; '.join(problems) or 'there is no address'}); "
            f"without a network, put the file at {path}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{name}.part"
    # A partial file may be of another version, which shows when it is complete; then all are tried from the start.
    order = [reachable[0], *reachable] if part.exists() else reachable
    for address in order:
        try:
            return fetch_whole(address, part, path, check, advance, sha256, patience)
        except (Broken, Refused) as error:
            problems.append(f"{urlsplit(address).hostname}: {error}")
    size = part.stat().st_size if part.exists() else 0
    if not size:
        part.unlink(missing_ok=True)
    resumed = f"; the same command goes on after {size:,} bytes" if size else ""
    raise InputError(f"{name} could not be fetched to {path}: {'; '.join(dict.fromkeys(problems))}{resumed}")


def fetch_whole(
    address: str, part: Path, path: Path, check: Check, advance: Advance, sha256: str | None, patience: Patience
) -> Path:
    """Complete the partial file, verify it and give it its name."""
    with open_locked(part) as stream:
        fetch(address, stream, part, advance, patience)
        try:
            verify(part, path, check, sha256)
        except InputError as error:
            raise Refused(f"{error}; it was put in {quarantine(part)}") from error
        os.fsync(stream.fileno())
        part.replace(path)
        sync_folder(path.parent)
        return path


def target_path(name: str, folder: Path) -> Path:
    """Return where a file of this name goes; raise `InputError` for a name that could leave the folder."""
    if not NAME.fullmatch(name) or ".." in name:
        raise InputError(f"{name!r} is not a file name; it must be letters, digits and any of _ . + - without '..'")
    return folder / name


def check_address(address: str) -> None:
    """Raise `InputError` for anything but an address of the web."""
    try:
        is_web = urlsplit(address).scheme in ("http", "https") and bool(urlsplit(address).hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise InputError(f"{address!r} is not an address to fetch from; it must begin with http:// or https://")


@contextlib.contextmanager
def open_locked(part: Path) -> Iterator[BinaryIO]:
    """Open the partial file for this process alone; a link in its place is not followed."""
    refusal = f"another process is fetching {part.with_suffix('')}; wait for it or stop it"
    while True:
        with contextlib.ExitStack() as stack:
            try:
                descriptor = stack.enter_context(exclusive(part, refusal))
            except OSError as error:
                raise InputError(f"cannot write {part}: {error.strerror}") from error
            # Another process may have renamed the file between our opening and our locking it.
            if part.exists() and os.path.samestat(os.fstat(descriptor), part.stat()):
                yield stack.enter_context(open(descriptor, "r+b", closefd=False))
                return


def fetch(address: str, stream: BinaryIO, part: Path, advance: Advance, patience: Patience) -> None:
    """Request the file until it is complete; give up after some attempts that did not get further than before."""
    best, failures = stream.seek(0, os.SEEK_END), 0
    while True:
        try:
            receive(address, stream, advance, patience)
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


def receive(address: str, stream: BinaryIO, advance: Advance, patience: Patience) -> None:
    """Request the missing bytes of the file once."""
    have = stream.seek(0, os.SEEK_END)
    headers = {"User-Agent": "drol", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = opener().open(urllib.request.Request(address, headers=headers), timeout=patience.stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:  # there is nothing after what we have, or it is not the same file
                if total_length(error) == have:
                    return
                stream.truncate(0)
                raise Broken("the partial file does not belong to it") from error
            if error.code in (408, 429) or error.code >= 500:
                raise Broken(f"it answers {error.code} {error.reason}") from error
            raise Refused(f"it answers {error.code} {error.reason}") from error
    with response:
        if address.startswith("https:") and not response.url.startswith("https:"):
            raise Refused(f"it leads to {response.url}, which is not encrypted")
        if response.status == 206 and range_start(response) == have:
            total = total_length(response)
        else:
            have, total = 0, response.length
            stream.truncate(0)
        stream.seek(have)
        check_space(stream, have, total)
        copy(response, stream, have, total, advance, patience)


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


def verify(file: Path, path: Path, check: Check, sha256: str | None) -> None:
    """Compare a file with the sum that `path` is known to have, then check its content; record the sum on first use."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    record = path.with_name(f"{path.name}.sha256")
    recorded = record.read_text(errors="replace").split()[:1] if record.is_file() else []
    if recorded and not SUM.fullmatch(recorded[0]):
        raise InputError(f"{record} does not begin with a SHA-256 sum; remove it to record a new one")
    for known, origin in ((sha256, "published"), (recorded[0] if recorded else None, f"recorded in {record}")):
        if known is not None and known != found:
            raise InputError(f"its SHA-256 is {found[:16]}..., the one {origin} is {known[:16]}...")
    check(file)
    if not recorded:
        write_whole(record, f"{found}  {path.name}\n")


def quarantine(file: Path) -> Path:
    """Put a bad file aside, under a name made of its content, so that the same one is not kept twice; return it."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    folder = file.parent / "quarantine"
    folder.mkdir(exist_ok=True)
    return file.replace(folder / f"{file.name.removesuffix('.part')}.{digest[:16]}")
