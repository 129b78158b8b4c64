"""npz files, read in pieces: the list of members and the headers first, nothing unpickled, nothing held whole."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from drol.data.files.episodes import Arrays
from drol.data.files.fields import Source, block_steps, choose, equal_length, side_by_side
from drol.data.files.npz import Member, names, open_npz
from drol.errors import InputError

LARGEST_TURNED = 1 << 30  # bytes of an array in Fortran order, which must be read whole


class NpzSource(Source):
    """Arrays of equal length; in each, a row is a step."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]]):
        self.path = path
        with open_npz(path, ()) as archive:
            self.chosen = choose(names(archive), mapping, path)
            members = {name: Member.of(archive, name) for chosen in self.chosen.values() for name in chosen}
        for name, member in members.items():
            if not member.shape:
                raise InputError(f"{path}: {name} is a single value; it must have a row for each step")
        self.nbytes = sum(math.prod(member.shape) * member.dtype.itemsize for member in members.values())
        self.steps = equal_length(path, {name: member.shape[0] for name, member in members.items()})

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        count = block_steps(self.nbytes // max(1, self.steps))
        with open_npz(self.path, ()) as archive, contextlib.ExitStack() as stack:
            rows = {}
            for name in {name for chosen in self.chosen.values() for name in chosen}:
                member = Member.of(archive, name)
                stream = stack.enter_context(archive.open(member.info))
                stream.read(member.data_offset)
                turned = member.fortran_order and len(member.shape) > 1
                rows[name] = read_turned(stream, member, name) if turned else Rows(stream, member)
            for start in range(0, self.steps, count):
                stop = min(start + count, self.steps)
                parts = {name: each[start:stop] for name, each in rows.items()}
                block = {
                    field: side_by_side([parts[name] for name in names], names) for field, names in self.chosen.items()
                }
                yield block, stop / self.steps
            for name, each in rows.items():
                if isinstance(each, Rows) and each.stream.read(1):  # at the end zipfile compares the checksum
                    raise EOFError(f"{name} goes on after its end")


class Rows:
    """An array that is read from a stream, row after row."""

    def __init__(self, stream: IO[bytes], member: Member):
        self.stream, self.row_shape, self.dtype = stream, member.shape[1:], member.dtype
        self.row_bytes = math.prod(self.row_shape) * self.dtype.itemsize

    def __getitem__(self, piece: slice) -> np.ndarray:
        count = piece.stop - piece.start
        data = self.stream.read(count * self.row_bytes)
        if len(data) < count * self.row_bytes:
            raise EOFError("an array ends too early")
        return np.frombuffer(data, self.dtype).reshape(count, *self.row_shape)


def read_turned(stream: IO[bytes], member: Member, name: str) -> np.ndarray:
    """An array in Fortran order: its steps lie apart, so all of it is read."""
    size = math.prod(member.shape) * member.dtype.itemsize
    if size > LARGEST_TURNED:
        raise InputError(f"{name} is large and in Fortran order; save numpy.ascontiguousarray of it")
    return np.frombuffer(stream.read(size), member.dtype).reshape(member.shape, order="F")
