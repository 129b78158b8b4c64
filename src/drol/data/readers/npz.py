"""Read untrusted npz files without unpickling; every fault raises an `InputError` of one line.

The list of members and the header of each array are checked before any data are decompressed.
"""

import contextlib
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.npy_header import NUMBERS, NUMBERS_AND_TEXTS, Header, read_header
from drol.data.readers import columns
from drol.data.readers.columns import IMAGE, OTHER, TEXT, Column, describe_shape
from drol.data.readers.fields import TEXT_FIELDS, StepFile, choose_fields, common_length, join_fields, steps_in_block
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError
from drol.machine import aligned, free_memory

MAX_MEMBERS = 1000
MAX_LIST_BYTES = 1 << 20  # size of the archive's list of members
MAX_RATIO = 1032  # the largest compression ratio of deflate; a member that declares more is invalid
BLOCK_BYTES = 1 << 20
LARGEST_COLUMN_MAJOR = 1 << 30  # bytes of an array in Fortran order, which must be loaded completely
ENCRYPTED = 0x1
MAX_BYTES_VARIABLE = "DROL_MAX_BYTES"
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError, RuntimeError)

Transform = Callable[[np.ndarray], np.ndarray]


def read_npz(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    transforms: Mapping[str, Transform] | None = None,
    max_bytes: int | None = None,
) -> Arrays:
    """Return the named arrays of an npz file.

    Args:
        path: The file.
        required: Arrays that must exist.
        optional: Arrays that may be missing.
        transforms: Functions that change an array while it is read, one block of rows at a time. Dropped values are
            never kept in memory.
        max_bytes: The maximum total size of the arrays (default: $DROL_MAX_BYTES; never more than the free memory).
    """
    with open_npz(path, required) as archive:
        arrays = {name: Member.find(archive, name) for name in (*required, *optional) if name in list_names(archive)}
        check_memory(arrays, transforms or {}, max_bytes)
        return {name: member.read((transforms or {}).get(name)) for name, member in arrays.items()}


def check_npz(path: Path, required: Sequence[str]) -> None:
    """Read an npz file to its end without keeping it; raise `InputError` for missing arrays and wrong checksums."""
    with open_npz(path, required) as archive:
        for name in list_names(archive):
            Member.find(archive, name).read(lambda block: np.empty((len(block), 0), bool))


class NpzFile(StepFile):
    """An npz file of arrays of equal length with one row for each step."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None):
        self.path = path
        with open_npz(path, ()) as archive:
            self.columns = [describe_member(archive, name) for name in list_names(archive)]
            self.chosen = choose_fields(self.columns, mapping, path)
            if mapping is None:
                found = {name: Member.find(archive, name, NUMBERS_AND_TEXTS) for name in self.chosen}
                self.keep_steps({name: member.shape[0] for name, member in found.items()})
            self.kinds = {
                name: NUMBERS_AND_TEXTS if field in TEXT_FIELDS or mapping is None else NUMBERS
                for field, names in self.chosen.items()
                for name in names
            }
            members = {name: Member.find(archive, name, kinds) for name, kinds in self.kinds.items()}
            for name, member in members.items():
                if not member.shape:
                    raise InputError(f"{name} is a single value; it must have a row for each step")
                if member.header.column_major and member.header.nbytes > LARGEST_COLUMN_MAJOR:
                    raise InputError(f"{name} is large and in Fortran order; save numpy.ascontiguousarray of it")
        self.nbytes = sum(member.header.nbytes for member in members.values())
        self.steps = common_length(path, {name: member.shape[0] for name, member in members.items()})

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        count = steps_in_block(self.nbytes // max(1, self.steps))
        with open_npz(self.path, ()) as archive, contextlib.ExitStack() as stack:
            readers = {
                name: stack.enter_context(Member.find(archive, name, kinds).open_rows())
                for name, kinds in self.kinds.items()
            }
            for start in range(0, self.steps, count):
                stop = min(start + count, self.steps)
                parts = {name: reader.read(stop - start) for name, reader in readers.items()}
                yield join_fields(parts, self.chosen), stop / self.steps


def describe_member(archive: zipfile.ZipFile, name: str) -> Column:
    """Describe an array of an archive; mark an unreadable array as such."""
    try:
        member = Member.find(archive, name, NUMBERS_AND_TEXTS)
    except InputError as error:
        return Column(name, OTHER, words="unreadable", why=str(error))
    shape, dtype = member.shape[1:], member.dtype
    if not member.shape:
        return Column(name, OTHER, words=f"a single {dtype}", why="it is a single value, not a row for each step")
    if dtype.kind == "U":
        return Column(name, TEXT, shape, "text", why="it is text")
    kind = IMAGE if len(shape) == 3 and dtype == np.uint8 else columns.NUMBERS
    return Column(name, kind, shape, describe_shape(str(dtype), shape))


@contextlib.contextmanager
def open_npz(path: Path, required: Sequence[str]) -> Iterator[zipfile.ZipFile]:
    """Open an archive and check its list of members; convert errors inside the context to `InputError`."""
    if not path.is_file():
        raise InputError(f"dataset file {path} does not exist; give the path of an .npz file")
    try:
        with path.open("rb", buffering=0) as raw, LimitedReader(raw) as stream:
            if stream.peek(6)[:6] == b"\x93NUMPY":
                raise InputError(f"it holds a single array; it must be an .npz file with {list(required)}")
            stream.largest_read = MAX_LIST_BYTES
            with zipfile.ZipFile(stream) as archive:
                stream.largest_read = None
                found = list_names(archive)
                if len(found) > MAX_MEMBERS:
                    raise InputError(f"it has {len(found)} arrays; the limit is {MAX_MEMBERS}")
                if len(set(found)) < len(found):
                    raise InputError("it has two arrays of one name; each name may occur once")
                missing = [name for name in required if name not in found]
                if missing:
                    raise InputError(f"it has the arrays {sorted(found)} but lacks {missing}")
                yield archive
    except InputError as error:
        raise InputError(f"dataset file {path} cannot be used: {error}") from error
    except DAMAGE as error:
        raise InputError(f"dataset file {path} is truncated or damaged ({error}); fetch or collect it again") from error
    except MemoryError as error:
        raise InputError(f"dataset file {path} does not fit in memory") from error
    except (ValueError, OverflowError, UnicodeError) as error:
        raise InputError(f"dataset file {path} is not an .npz file of plain arrays ({error})") from error


class LimitedReader(io.BufferedReader):
    """A file that raises `InputError` for reads of more than `largest_read` bytes.

    It limits the list of members, which zipfile reads at once.
    """

    largest_read: int | None = None

    def read(self, size: int | None = -1) -> bytes:
        if self.largest_read is None:
            return io.BufferedReader.read(self, size)
        most = self.largest_read + 1
        data = io.BufferedReader.read(self, most if size is None or size < 0 else min(size, most))
        if len(data) == most:
            raise InputError(f"its list of members is longer than {self.largest_read:,} bytes")
        return data


def list_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays in an archive."""
    return [info.filename.removesuffix(".npy") for info in archive.infolist()]


@dataclass(frozen=True)
class Member:
    """An array in an archive; its declared shape matches its size in bytes."""

    archive: zipfile.ZipFile
    info: zipfile.ZipInfo
    header: Header

    @classmethod
    def find(cls, archive: zipfile.ZipFile, name: str, kinds: str = NUMBERS) -> "Member":
        """Return an array by its name; read its header but not its data."""
        info = next(info for info in archive.infolist() if info.filename.removesuffix(".npy") == name)
        if info.flag_bits & ENCRYPTED:
            raise InputError(f"the array {name!r} is encrypted; save it with numpy.savez")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"the array {name!r} is packed by method {info.compress_type}; only deflate is read")
        most = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else MAX_RATIO)
        if info.file_size > most:
            raise InputError(f"the array {name!r} claims {info.file_size:,} bytes, more than can be packed in its part")
        with archive.open(info) as stream:
            try:
                return cls(archive, info, read_header(stream, info.file_size, kinds))
            except InputError as error:
                raise InputError(f"the array {name!r} {error}") from error

    @property
    def shape(self) -> tuple[int, ...]:
        return self.header.shape

    @property
    def dtype(self) -> np.dtype:
        return self.header.dtype

    @contextlib.contextmanager
    def open_rows(self) -> Iterator["RowReader"]:
        """Open the rows for reading; the caller must read all of them, and the checksum is compared on exit."""
        with self.archive.open(self.info) as stream:
            stream.read(self.header.data_offset)
            yield RowReader(self, stream)
            if stream.read(1):  # zipfile compares the checksum at the end of the member
                raise EOFError(f"{self.info.filename} continues after its end")

    def read(self, transform: Transform | None) -> np.ndarray:
        """Return all rows, transformed block by block, in memory that jax can use without a copy."""
        native = self.dtype.newbyteorder("=")
        with self.open_rows() as reader:
            if self.dtype == native and transform is None:
                result = aligned(self.shape, native)
                reader.fill(result)
                return result
            rows, *rest = self.shape or (1,)
            count = max(1, BLOCK_BYTES // max(1, math.prod(rest) * self.dtype.itemsize))
            change: Transform = transform or (lambda rows: rows)
            sample = change(np.empty((0, *rest), native))
            result = aligned((rows, *sample.shape[1:]), sample.dtype)
            for first in range(0, rows, count):
                block = reader.read(min(count, rows - first))
                result[first : first + len(block)] = change(block.astype(native, copy=False))
        return result if self.shape else result.reshape(sample.shape[1:])


class RowReader:
    """Reads the rows of an array in order."""

    def __init__(self, member: Member, stream: Any):
        self.member, self.stream = member, stream
        self.position = 0
        self.whole: np.ndarray | None = None
        if member.header.column_major:
            columns = np.empty(member.shape[::-1], member.dtype)
            self.read_into(columns)
            self.whole = columns.T

    def read(self, count: int) -> np.ndarray:
        """Return the next rows, in the byte order of the file."""
        rows = np.empty((count, *self.member.shape[1:]), self.member.dtype)
        self.fill(rows)
        return rows

    def fill(self, rows: np.ndarray) -> None:
        """Read the next rows into a contiguous array of the same type."""
        if self.whole is None:
            self.read_into(rows)
        else:
            rows[:] = self.whole[self.position : self.position + len(rows)]
            self.position += len(rows)

    def read_into(self, array: np.ndarray) -> None:
        """Read the bytes of a contiguous array."""
        view = array.reshape(-1).view(np.uint8).data
        position = 0
        while position < len(view):
            count = self.stream.readinto(view[position : position + BLOCK_BYTES])
            if not count:
                raise EOFError(f"{self.member.info.filename} ends {len(view) - position:,} bytes early")
            position += count


def check_memory(members: Mapping[str, Member], transforms: Mapping[str, Transform], max_bytes: int | None) -> None:
    """Raise `InputError` for arrays that exceed the limit or the free memory, before any is decompressed."""
    needed = 0
    for name, member in members.items():
        sample = np.empty((0, *member.shape[1:]), member.dtype.newbyteorder("="))
        sample = transforms[name](sample) if name in transforms else sample
        needed += math.prod(member.shape[:1]) * math.prod(sample.shape[1:]) * sample.dtype.itemsize
    limit = max_bytes if max_bytes is not None else read_limit()
    if limit is not None and needed > limit:
        raise InputError(
            f"its arrays take {needed:,} bytes, more than the maximum of {limit:,}; ${MAX_BYTES_VARIABLE} sets it"
        )
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(f"its arrays take {needed:,} bytes, more than the {free:,} bytes of memory that are free")


def read_limit() -> int | None:
    """Return the number of bytes in $DROL_MAX_BYTES; None if it is not set."""
    text = os.environ.get(MAX_BYTES_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise InputError(f"${MAX_BYTES_VARIABLE} is {text!r}; it must be a whole number of bytes")
    return int(text)
