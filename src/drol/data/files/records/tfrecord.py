"""TFRecord files of RLDS, as TFDS writes them: a record is an episode, with the values of all its steps in lists.

The format is small enough to be read here: a record has its length, a checksum of the length, the data and a checksum
of it; the data is a `tf.train.Example`: named lists of bytes, floats or whole numbers. By the rule of RLDS the last
step of an episode only holds the final observation.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from drol.data.files.columns import IMAGE, OTHER, Column, describe_shape
from drol.data.files.fields import IGNORE, StepFile, choose_fields, join_fields
from drol.data.rows import Arrays
from drol.errors import InputError

STEPS = "steps/"
COUNTED = (
    "steps/is_last",
    "steps/is_first",
    "steps/is_terminal",
    "steps/reward",
    "steps/discount",
)  # one for each step
LARGEST_RECORD = 1 << 30
POLYNOMIAL = 0x82F63B78  # of CRC-32C
OWN = {
    "is_first": "RLDS marks the first step; a record is an episode",
    "is_last": "RLDS marks the last step, which only holds the final observation",
    "is_terminal": "it marks true ends",
    "discount": "true ends are marked by is_terminal",
}

Lists = dict[str, np.ndarray | int]  # numbers, or how many texts or images there are


class TFRecordFile(StepFile):
    """The episodes of one TFRecord file."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]]):
        self.path = path
        self.nbytes = path.stat().st_size
        first = next((lists for lists, _ in self.episodes()), None)
        if first is None:
            raise InputError(f"{path} holds no record; there is nothing to learn from")
        steps = self.count_steps(first)
        self.columns = [self.describe(name, value, steps) for name, value in first.items()]
        given = dict(mapping)
        if "terminal" not in given and "is_terminal" in [column.name for column in self.columns]:
            given["terminal"] = ["is_terminal"]
        given.setdefault("end", [IGNORE])
        self.chosen = choose_fields(self.columns, given, path)
        self.chosen.pop("episode", None)
        self.used = sorted({name for names in self.chosen.values() for name in names})

    @property
    def names(self) -> dict[str, str]:
        fields = super().names
        return fields | {"episode": "the records", "next_observation": fields["observation"]}

    def describe(self, name: str, value: np.ndarray | int, steps: int) -> Column:
        """Return what a list of a record is."""
        own = name.removeprefix(STEPS)
        if isinstance(value, int):
            images = value == steps and "image" in name
            why = "packed images are not read" if images else "it is text or bytes"
            return Column(own, IMAGE if images else OTHER, words="images" if images else "bytes", why=why)
        if not name.startswith(STEPS) or len(value) % steps:
            return Column(own, OTHER, words=f"{len(value)} numbers", why="it is not a value for each step")
        width = len(value) // steps
        shape = () if width == 1 else (width,)
        return Column(own, shape=shape, words=describe_shape(str(value.dtype), shape), why=OWN.get(own, ""))

    def count_steps(self, lists: Lists) -> int:
        """Return the number of steps of a record."""
        for name in COUNTED:
            found = lists.get(name)
            if isinstance(found, np.ndarray) and len(found):
                return len(found)
        raise InputError(f"{self.path} has no steps/is_last in a record; it must be RLDS as TFDS writes it")

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        shapes = {column.name: column.shape for column in self.columns}
        for number, (lists, share) in enumerate(self.episodes()):
            steps = self.count_steps(lists)
            parts = {}
            for name in self.used:
                values = lists.get(STEPS + name)
                size = int(np.prod(shapes[name]))
                if not isinstance(values, np.ndarray) or len(values) != steps * size:
                    raise InputError(f"{self.path}: record {number} has not {size} numbers of {name} for each step")
                parts[name] = values.reshape(steps, *shapes[name])
            if steps < 2:
                continue
            block = join_fields(parts, self.chosen)
            after = block["observation"][1:]
            ended = block["terminal"][1:] if "terminal" in block else None
            block = {name: array[:-1] for name, array in block.items()}
            block |= {"next_observation": after, "episode": np.full(steps - 1, number)}
            yield block | ({"terminal": ended} if ended is not None else {}), share

    def episodes(self) -> Iterator[tuple[Lists, float]]:
        """Yield the lists of each record, with the share of the file that is then read."""
        size = max(1, self.nbytes)
        with self.path.open("rb") as file:
            number = 0
            while (data := self.read_record(file, number)) is not None:
                try:
                    lists = parse_example(data)
                except (ValueError, IndexError, UnicodeDecodeError) as error:
                    raise InputError(f"{self.path}: record {number} is no tf.train.Example ({error})") from error
                yield lists, file.tell() / size
                number += 1

    def read_record(self, file: BinaryIO, number: int) -> memoryview | None:
        """Return the data of the next record; None at the end of the file."""
        head = file.read(12)
        if not head:
            return None
        length = int.from_bytes(head[:8], "little")
        left = os.fstat(file.fileno()).st_size - file.tell()
        if len(head) < 12 or int.from_bytes(head[8:], "little") != masked_checksum(head[:8]):
            raise InputError(f"{self.path} is damaged or no TFRecord file (record {number}); fetch it again")
        if length + 4 > left or length > LARGEST_RECORD:
            raise InputError(
                f"{self.path}: record {number} claims {length:,} bytes, and {left:,} follow; fetch it again"
            )
        data = file.read(length)
        file.read(4)
        return memoryview(data)


def masked_checksum(data: bytes) -> int:
    """Return the checksum that TFRecord has of a few bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return a whole number of protobuf and the place after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("a number has no end")


def read_fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield number, wire type and bytes of each field of a message of protobuf."""
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        kind = key & 7
        if kind == 2:
            length, place = read_varint(data, place)
        elif kind == 0:
            start = place
            _, place = read_varint(data, place)
            yield key >> 3, kind, data[start:place]
            continue
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field has the type {kind}")
        if place + length > len(data):
            raise ValueError("a field is longer than its message")
        yield key >> 3, kind, data[place : place + length]
        place += length


def parse_example(data: memoryview) -> Lists:
    """Return the lists of a `tf.train.Example` by name."""
    lists: Lists = {}
    for _, _, features in read_fields(data):
        for _, _, entry in read_fields(features):
            parts = {number: part for number, _, part in read_fields(entry)}
            name = bytes(parts[1]).decode() if 1 in parts else ""
            for kind, _, values in read_fields(parts.get(2, memoryview(b""))):
                lists[name] = parse_list(kind, values)
    return lists


def parse_list(kind: int, values: memoryview) -> np.ndarray | int:
    """Return a list of floats (2) or whole numbers (3), or how many bytes (1) there are."""
    parts = [(wire, part) for _, wire, part in read_fields(values)]
    if kind == 1:
        return len(parts)
    joined = b"".join(bytes(part) for _, part in parts)
    if kind == 2:
        return np.frombuffer(joined, "<f4")
    return read_varints(np.frombuffer(joined, np.uint8))


def read_varints(data: np.ndarray) -> np.ndarray:
    """Return whole numbers of protobuf that follow one another."""
    last = data < 0x80
    if not len(data):
        return np.zeros(0, np.int64)
    if not last[-1]:
        raise ValueError("a number has no end")
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends - starts).max() > 9:
        raise ValueError("a number is too long")
    place = np.arange(len(data)) - np.repeat(starts, ends - starts + 1)
    parts = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(parts, starts).astype(np.int64)
