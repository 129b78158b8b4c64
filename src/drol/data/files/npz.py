"""Read arrays from npz files that somebody else wrote: nothing is unpickled, every fault is one clear line.

The folder of the archive and the header of each array are read and weighed before anything is unpacked.
"""

import contextlib
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError

MAX_MEMBERS = 1000
MAX_FOLDER_BYTES = 1 << 20  # of the archive's list of members
MAX_RATIO = 1032  # deflate cannot shrink further; a member that claims more is a lie
BLOCK_BYTES = 1 << 20
ALIGNMENT = 64  # jax on a CPU takes over an aligned array without copying it
ENCRYPTED = 0x1
MAX_BYTES_VARIABLE = "DROL_MAX_BYTES"

Transform = Callable[[np.ndarray], np.ndarray]


def read_npz(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    transforms: Mapping[str, Transform] | None = None,
    max_bytes: int | None = None,
) -> dict[str, np.ndarray]:
    """The named arrays of an npz file; an array that is required must be there, one that is optional may be.

    A transform is applied to an array block of rows by block of rows while it is read, so that what it drops is never
    held. Arrays of more than `max_bytes` together (default: $DROL_MAX_BYTES or the free memory) are refused.
    """
    with open_npz(path, required) as archive:
        arrays = {name: Member.of(archive, name) for name in (*required, *optional) if name in names(archive)}
        check_memory(list(arrays.values()), transforms or {}, max_bytes)
        return {name: member.read((transforms or {}).get(name)) for name, member in arrays.items()}


def check_npz(path: Path, required: Sequence[str]) -> None:
    """Read an npz file to its end without keeping it; raise if an array is missing or a byte is not as it was."""
    with open_npz(path, required) as archive:
        for name in names(archive):
            Member.of(archive, name).read(lambda block: np.empty((len(block), 0), bool))


@contextmanager
def open_npz(path: Path, required: Sequence[str]) -> Iterator[zipfile.ZipFile]:
    """The archive, once its list of members is found sane; whatever fails inside is an `InputError`."""
    if not path.is_file():
        raise InputError(f"dataset file {path} does not exist; give the path of an .npz file")
    try:
        with path.open("rb", buffering=0) as raw, Reader(raw) as stream:
            if stream.peek(6)[:6] == b"\x93NUMPY":
                raise InputError(f"it holds a single array; it must be an .npz file with {list(required)}")
            stream.largest_read = MAX_FOLDER_BYTES
            with zipfile.ZipFile(stream) as archive:
                stream.largest_read = None
                found = names(archive)
                if len(found) > MAX_MEMBERS:
                    raise InputError(f"it has {len(found)} members; at most {MAX_MEMBERS} are read")
                if len(set(found)) < len(found):
                    raise InputError("it has two arrays of one name; each name may occur once")
                missing = [name for name in required if name not in found]
                if missing:
                    raise InputError(f"it has the arrays {sorted(found)} but lacks {missing}")
                yield archive
    except InputError as error:
        raise InputError(f"dataset file {path} cannot be used: {error}") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise InputError(f"dataset file {path} is truncated or damaged ({error}); fetch or collect it again") from error
    except MemoryError as error:
        raise InputError(f"dataset file {path} does not fit in memory") from error
    except (ValueError, OverflowError, UnicodeError) as error:
        raise InputError(f"dataset file {path} is not an .npz file of plain arrays ({error})") from error


class Reader(io.BufferedReader):
    """A file that refuses reads longer than `largest_read`: zipfile reads its list of members in one."""

    largest_read: int | None = None

    def read(self, size: int | None = -1) -> bytes:
        if self.largest_read is None:
            return io.BufferedReader.read(self, size)
        most = self.largest_read + 1
        data = io.BufferedReader.read(self, most if size is None or size < 0 else min(size, most))
        if len(data) == most:
            raise InputError(f"its list of members is longer than {self.largest_read:,} bytes")
        return data


def names(archive: zipfile.ZipFile) -> list[str]:
    return [info.filename.removesuffix(".npy") for info in archive.infolist()]


@dataclass(frozen=True)
class Member:
    """An array in an archive whose declared shape agrees with the bytes that are there."""

    archive: zipfile.ZipFile
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    data_offset: int

    @classmethod
    def of(cls, archive: zipfile.ZipFile, name: str) -> "Member":
        """Read the header, and nothing of the data."""
        info = next(info for info in archive.infolist() if info.filename.removesuffix(".npy") == name)
        if info.flag_bits & ENCRYPTED:
            raise InputError(f"the array {name!r} is encrypted; save it with numpy.savez")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"the array {name!r} is packed by method {info.compress_type}; only deflate is read")
        most = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else MAX_RATIO)
        if info.file_size > most:
            raise InputError(f"the array {name!r} claims {info.file_size:,} bytes, more than can be packed in its part")
        with archive.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise InputError(f"the array {name!r} has the unknown npy version {version}")
            read_header: Any = getattr(np.lib.format, f"read_array_header_{min(version[0], 2)}_0")
            shape, fortran_order, dtype = read_header(stream)
            offset = stream.tell()
        if dtype.hasobject:
            raise InputError(
                f"the array {name!r} holds pickled Python objects, which could run code; "
                "save it as plain arrays of numbers with numpy.savez"
            )
        if dtype.kind not in "biuf" or min(shape, default=0) < 0:
            raise InputError(f"the array {name!r} has type {dtype} and shape {shape}; it must be numbers")
        declared = math.prod(shape) * dtype.itemsize
        if declared != info.file_size - offset:
            raise InputError(
                f"the array {name!r} declares {declared:,} bytes (shape {shape}) "
                f"where the file has {info.file_size - offset:,}"
            )
        return cls(archive, info, shape, dtype, fortran_order, offset)

    def read(self, transform: Transform | None) -> np.ndarray:
        """All rows, each block of them through the transform."""
        with self.archive.open(self.info) as stream:
            stream.read(self.data_offset)
            if self.fortran_order and len(self.shape) > 1:
                whole = aligned(self.shape[::-1], self.dtype)
                fill(stream, whole)
                whole = whole.T.astype(self.dtype.newbyteorder("="), order="C")
                result = transform(whole) if transform else whole
            else:
                result = self.read_blocks(stream, transform)
            if stream.read(1):  # at the end zipfile compares the checksum
                raise EOFError(f"{self.info.filename} goes on after its end")
        return result

    def read_blocks(self, stream: Any, transform: Transform | None) -> np.ndarray:
        native = self.dtype.newbyteorder("=")
        if self.dtype == native and transform is None:
            result = aligned(self.shape, native)
            fill(stream, result)
            return result
        rows, *rest = self.shape or (1,)
        row_bytes = max(1, math.prod(rest) * self.dtype.itemsize)
        block = np.empty((min(rows, max(1, BLOCK_BYTES // row_bytes)), *rest), self.dtype)
        change: Transform = transform or (lambda rows: rows)
        sample = change(block[:0].astype(native))
        result = aligned((rows, *sample.shape[1:]), sample.dtype)
        for first in range(0, rows, max(1, len(block))):
            part = block[: rows - first]
            fill(stream, part)
            result[first : first + len(part)] = change(part.astype(native, copy=False))
        return result if self.shape else result.reshape(sample.shape[1:])


def aligned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)


def fill(stream: Any, array: np.ndarray) -> None:
    """Read the bytes of a contiguous array."""
    view = array.reshape(-1).view(np.uint8).data
    position = 0
    while position < len(view):
        count = stream.readinto(view[position : position + BLOCK_BYTES])
        if not count:
            raise EOFError(f"it ends {len(view) - position:,} bytes early")
        position += count


def check_memory(members: list[Member], transforms: Mapping[str, Transform], max_bytes: int | None) -> None:
    """Refuse arrays that would not fit before any of them is unpacked."""
    needed = 0
    for member in members:
        transform = transforms.get(member.info.filename.removesuffix(".npy"))
        sample = np.empty((0, *member.shape[1:]), member.dtype.newbyteorder("="))
        sample = transform(sample) if transform else sample
        needed += math.prod(member.shape[:1]) * math.prod(sample.shape[1:]) * sample.dtype.itemsize
    limit = max_bytes if max_bytes is not None else asked_limit()
    if limit is not None and needed > limit:
        raise InputError(
            f"its arrays take {needed:,} bytes, more than the maximum of {limit:,}; ${MAX_BYTES_VARIABLE} sets it"
        )
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(f"its arrays take {needed:,} bytes, more than the {free:,} bytes of memory that are free")


def asked_limit() -> int | None:
    text = os.environ.get(MAX_BYTES_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise InputError(f"${MAX_BYTES_VARIABLE} is {text!r}; it must be a whole number of bytes")
    return int(text)


def free_memory() -> int | None:
    """Bytes that this process may still take, as far as the system tells: its own and its group's limit."""
    amounts = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                amounts.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    amounts += group_memory(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(0, min(amounts)) if amounts else None


def group_memory(membership: Path, root: Path) -> list[int]:
    """What the control groups of this process, as of a cluster's job, leave to it: the group's and all those around it.

    What the group holds of files counts as free: the system gives it back when it is needed.
    """
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return []
    amounts = []
    for _, controllers, path in lines:
        if controllers == "":  # version 2
            top, most, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, most, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = top / path.strip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(top):
                with contextlib.suppress(OSError, ValueError, KeyError):  # ValueError: no limit is the word "max"
                    held = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    files = int(held["inactive_file"]) + int(held["active_file"])
                    amounts.append(int((folder / most).read_text()) - int((folder / used).read_text()) + files)
    return amounts
