"""Download a file from the first of several addresses that works; resume interrupted transfers.

NAME.part, NAME.part.etag   the bytes fetched so far, and the ETag of their file
NAME                        the file, renamed from NAME.part after length, SHA-256 and content were checked
NAME.sha256                 the checksum, recorded on first use; later copies must match it (`sha256sum -c` reads it)
"""

import contextlib
import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from drol.errors import InputError
from drol.progress import Report
from drol.storage import exclusive, sync_folder, write_whole

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,200}")
SUM = re.compile(r"[0-9a-f]{64}")
ETAG = re.compile(r'"[\x21\x23-\x7e]{0,200}"')  # a strong ETag, which guarantees equal bytes
CHUNK_BYTES = 1 << 18
ATTEMPTS = 3  # consecutive attempts at one address that bring no new byte
PAUSE_SECONDS = 1.0  # before an attempt, multiplied by the number of consecutive failures
TIMEOUT, LONGEST_TIMEOUT = 20.0, 3600.0  # seconds that a server may be silent

Check = Callable[[Path], None]  # raises InputError for a file with wrong content


class Failed(Exception):
    """A failed transfer; `again` is true if another attempt at the same address may succeed."""

    def __init__(self, words: object, again: bool):
        super().__init__(str(words))
        self.again = again


def download(
    name: str,
    folder: Path,
    addresses: Sequence[str],
    check: Check,
    report: Report | None = None,
    sha256: str | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Fetch a file from one of its addresses; only verify a file that already exists.

    Args:
        name: The name of the file.
        folder: The folder to put it in.
        addresses: Web addresses of the file, tried in this order.
        check: Raises `InputError` for a file with wrong content.
        report: Called with the number of bytes so far.
        sha256: The published checksum of the file, if there is one.
        timeout: The seconds that a server may be silent.

    Returns:
        The path of the file.
    """
    if not 0 < timeout <= LONGEST_TIMEOUT:
        raise InputError(f"a timeout of {timeout:g} s is not allowed; it must be above 0, to {LONGEST_TIMEOUT:g}")
    path = target_path(name, folder)
    for address in addresses:
        check_address(address)
    problems = []
    if path.is_file():
        try:
            verify(path, path, check, sha256)
            return path
        except InputError as error:
            problems.append(f"the file that is there is bad: {error}")
    part = folder / f"{name}.part"
    for address in addresses:
        failures, best = 0, size_of(part)
        while failures < ATTEMPTS:
            try:
                return fetch(address, part, path, check, report, sha256, timeout)
            except Failed as error:
                problems.append(f"{urlsplit(address).hostname}: {error}")
                if not error.again:
                    break
                failures = 0 if size_of(part) > best else failures + 1
                best = max(best, size_of(part))
                time.sleep(PAUSE_SECONDS * failures)
    resumed = f"; the same command resumes after {size_of(part):,} bytes" if size_of(part) else ""
    raise InputError(
        f"{name} cannot be fetched: {'; '.join(dict.fromkeys(problems)) or 'there is no address'}; without a network, "
        f"put the file at {path}{resumed}"
    )


def fetch(
    address: str, part: Path, path: Path, check: Check, report: Report | None, sha256: str | None, timeout: float
) -> Path:
    """Request the missing bytes once; if the file is then complete, verify and rename it."""
    etag_path = part.with_name(f"{part.name}.etag")
    etag = etag_path.read_text(errors="replace") if etag_path.is_file() else ""
    have = size_of(part) if ETAG.fullmatch(etag) else 0
    with open_response(address, have, etag, timeout) as response:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_locked(part) as stream:
            resumed = response.status == 206
            new = response.headers.get("ETag", "")
            fits = response.headers.get("Content-Range", "").startswith(f"bytes {have}-") and new in (etag, "")
            if not resumed or not fits or have != size_of(part):
                have = 0
                stream.truncate(0)
                etag_path.unlink(missing_ok=True)
                if resumed:
                    raise Failed("it answers with a part of another version", again=True)
                if ETAG.fullmatch(new):
                    write_whole(etag_path, new)
            copy(response, stream, have, path, report)
            try:
                verify(part, path, check, sha256)
            except InputError as error:
                part.unlink()
                etag_path.unlink(missing_ok=True)
                raise Failed(error, again=resumed) from error
            os.fsync(stream.fileno())
            part.replace(path)
    etag_path.unlink(missing_ok=True)
    sync_folder(path.parent)
    return path


def open_response(address: str, have: int, etag: str, timeout: float) -> Any:
    """Request a file, or its bytes from `have` on; return the response of the server."""
    headers = {"User-Agent": "drol", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={have}-", "If-Range": etag} if have else {}
    try:
        response = urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:  # no more bytes: the part is complete, or belongs to another file
            return open_response(address, 0, "", timeout)
        again = error.code in (408, 429) or error.code >= 500
        raise Failed(f"it answers {error.code} {error.reason}", again) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failed(getattr(error, "reason", None) or error or type(error).__name__, again=False) from error
    scheme = urlsplit(response.url).scheme
    if scheme not in ("http", "https") or (address.startswith("https:") and scheme != "https"):
        response.close()
        raise Failed(f"it leads to {response.url}, which is not encrypted", again=False)
    return response


def copy(response: Any, stream: BinaryIO, have: int, path: Path, report: Report | None) -> None:
    """Write a response to the partial file from the byte `have` on; raise `Failed` if the response ends early."""
    total = None if response.length is None else have + response.length
    stream.seek(have)
    while True:
        if report:
            report(have, total, path.name)
        try:
            chunk = response.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Failed(error, again=True) from error
        if not chunk:
            break
        try:
            stream.write(chunk)
            stream.flush()
        except OSError as error:
            raise InputError(f"cannot write {path}.part: {error.strerror}; it keeps what was fetched") from error
        have += len(chunk)
    if total is not None and have != total:
        raise Failed(f"it ends at {have:,} of {total:,} bytes", again=True)


def target_path(name: str, folder: Path) -> Path:
    """Return the path of a file in a folder; raise `InputError` for a name that could lead out of the folder."""
    if not NAME.fullmatch(name) or ".." in name:
        raise InputError(f"{name!r} is not a file name; it must be letters, digits and any of _ . + - without '..'")
    return folder / name


def check_address(address: str) -> None:
    """Raise `InputError` unless the address is an http or https URL."""
    try:
        is_web = urlsplit(address).scheme in ("http", "https") and bool(urlsplit(address).hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise InputError(f"{address!r} is not an address to fetch from; it must begin with http:// or https://")


@contextlib.contextmanager
def open_locked(part: Path) -> Iterator[BinaryIO]:
    """Open and lock the partial file; symbolic links are not followed."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(
                exclusive(part, f"another process is fetching {part.with_suffix('')}; wait for it or stop it")
            )
        except OSError as error:
            raise InputError(f"cannot write {part}: {error.strerror}") from error
        # Another process may have renamed the file after this one opened it and before this one locked it.
        if not part.exists() or not os.path.samestat(os.fstat(descriptor), part.stat()):
            raise Failed("another process fetched it", again=True)
        yield stack.enter_context(open(descriptor, "r+b", closefd=False))


def size_of(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def verify(file: Path, path: Path, check: Check, sha256: str | None) -> None:
    """Compare a file with the published and recorded checksums of `path`, then check its content.

    Record the checksum on first use.
    """
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    record = path.with_name(f"{path.name}.sha256")
    recorded = record.read_text(errors="replace").split()[:1] if record.is_file() else [found]
    if not recorded or not SUM.fullmatch(recorded[0]):
        raise InputError(f"{record} does not begin with a SHA-256 sum; remove it to record a new one")
    for origin, known in (("published", sha256 or found), (f"recorded in {record}", recorded[0])):
        if known != found:
            raise InputError(f"its SHA-256 is {found[:16]}..., the one {origin} is {known[:16]}...")
    check(file)
    if not record.is_file():
        write_whole(record, f"{found}  {path.name}\n")
