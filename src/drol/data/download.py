"""Fetch a file from the first of several addresses that gives it whole.

NAME.part, .version   the bytes that were fetched so far, and of which version; the next attempt requests the rest
NAME                  appears by renaming, once length, SHA-256 and content were found right
NAME.sha256           the sum, recorded on first use, which later copies must have (`sha256sum -c` reads it)
quarantine/NAME.*     files of the right length with wrong content
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from drol.data.reachability import find_reachable
from drol.data.receiving import Advance, Broken, Patience, Refused, read_version, receive_whole, version_path
from drol.errors import InputError
from drol.progress import Report
from drol.storage import exclusive, sync_folder, write_whole

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,200}")
SUM = re.compile(r"[0-9a-f]{64}")

Check = Callable[[Path], None]  # raises InputError for a file with wrong content


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
    problems = []
    if path.is_file():
        try:
            verify(path, path, check, sha256)
            return path
        except InputError as error:
            problems.append(f"the file that is there is bad: {error}")
    reachable, unreachable = find_reachable(addresses, patience.connect_seconds)
    problems += unreachable
    if not reachable:
        raise InputError(
            f"{name} cannot be fetched: no server answers ({'; '.join(problems) or 'there is no address'}); "
            f"without a network, put the file at {path}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        problems.append(f"it was put in {quarantine(path)}")
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
        version_path(part).unlink(missing_ok=True)
    goes_on = size and (read_version(part) or known_sums(path, sha256))
    resumed = f"; the same command goes on after {size:,} bytes" if goes_on else ""
    raise InputError(f"{name} could not be fetched to {path}: {'; '.join(dict.fromkeys(problems))}{resumed}")


def fetch_whole(
    address: str, part: Path, path: Path, check: Check, advance: Advance, sha256: str | None, patience: Patience
) -> Path:
    """Complete the partial file, verify it and give it its name."""
    with open_locked(part) as stream:
        receive_whole(address, stream, part, bool(known_sums(path, sha256)), advance, patience)
        try:
            verify(part, path, check, sha256)
        except InputError as error:
            version_path(part).unlink(missing_ok=True)
            raise Refused(f"{error}; it was put in {quarantine(part)}") from error
        os.fsync(stream.fileno())
        part.replace(path)
        version_path(part).unlink(missing_ok=True)
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


def verify(file: Path, path: Path, check: Check, sha256: str | None) -> None:
    """Compare a file with the sum that `path` is known to have, then check its content; record the sum on first use."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    for origin, known in known_sums(path, sha256).items():
        if known != found:
            raise InputError(f"its SHA-256 is {found[:16]}..., the one {origin} is {known[:16]}...")
    check(file)
    if not record_path(path).is_file():
        write_whole(record_path(path), f"{found}  {path.name}\n")


def known_sums(path: Path, sha256: str | None) -> dict[str, str]:
    """Return the sums that a file must have, by where they come from: the published one, and one recorded here."""
    sums = {"published": sha256} if sha256 else {}
    record = record_path(path)
    if record.is_file():
        recorded = record.read_text(errors="replace").split()[:1]
        if not recorded or not SUM.fullmatch(recorded[0]):
            raise InputError(f"{record} does not begin with a SHA-256 sum; remove it to record a new one")
        sums[f"recorded in {record}"] = recorded[0]
    return sums


def record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def quarantine(file: Path) -> Path:
    """Put a bad file aside, under a name made of its content, so that the same one is not kept twice; return it."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    folder = file.parent / "quarantine"
    folder.mkdir(exist_ok=True)
    return file.replace(folder / f"{file.name.removesuffix('.part')}.{digest[:16]}")
