"""Describe the columns of a file, and list the unused ones with the reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from drol.data.dimensions import LARGEST, LONGEST_TEXT, Dimensions

NUMBERS, TEXT, IMAGE, VIDEO, OTHER, ATTRIBUTE = "numbers", "text", "image", "video", "other", "attribute"
UNIT = re.compile(r"(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]*[^\d\[\]()][^\[\]()]*)[\])]")  # "speed [m/s]", "q (rad)"
NOT_NAMED = "no field has such a name; name it with a flag to use it"


@dataclass(frozen=True)
class Column:
    """An array, column, key, image or attribute of a file.

    Attributes:
        name: Its name in the file.
        kind: One of "numbers", "text", "image", "video", "other", "attribute".
        shape: The shape of a step; () is a single number.
        words: Its type, to display.
        names: The name of each of its numbers, if the file has them.
        unit: The unit of its numbers, if the file has it.
        frame: The frame of reference of its numbers, if the file has it.
        why: Why it is not used, if a rule excludes it.
    """

    name: str
    kind: str = NUMBERS
    shape: tuple[int, ...] = ()
    words: str = ""
    names: tuple[str, ...] = ()
    unit: str = ""
    frame: str = ""
    why: str = ""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_vector(self) -> bool:
        """Whether its steps are numbers that can be concatenated with other columns."""
        return self.kind == NUMBERS and len(self.shape) <= 1

    @property
    def is_readable(self) -> bool:
        """Whether its values can be read: numbers, texts, or images as arrays of bytes."""
        return self.kind in (NUMBERS, TEXT) or (self.kind == IMAGE and len(self.shape) == 3)

    def own_names(self) -> list[str]:
        """Return a name for each of its numbers."""
        if len(self.names) == self.size:
            return list(self.names)
        if not self.shape or self.shape == (1,):
            return [self.name]
        return [f"{self.name}[{number}]" for number in range(self.size)]


@dataclass(frozen=True)
class Unused:
    """An unused column of a file, and the reason."""

    name: str
    words: str
    why: str


def describe_shape(kind: str, shape: Sequence[int]) -> str:
    """Return the type of a column and the shape of a step as text."""
    return f"{kind} [{' x '.join(map(str, shape))}]" if shape else kind


def split_unit(header: str) -> tuple[str, str]:
    """Return the name and the unit of a header such as "speed [m/s]"; the unit is "" if there is none."""
    match = UNIT.fullmatch(header)
    return (match["name"], match["unit"].strip()) if match else (header, "")


def dimensions_of(names: Sequence[str], columns: Mapping[str, Column]) -> Dimensions | None:
    """Return the names, units and frames of some joined columns.

    Return None for images, for very long vectors, and for names that are ambiguous, empty or too long.
    """
    parts = [columns[name] for name in names if name in columns]
    if len(parts) < len(names) or not all(part.is_vector for part in parts):
        return None
    if sum(part.size for part in parts) > LARGEST:
        return None
    own = [part.own_names() for part in parts]
    texts = [text for part in own for text in part]
    if len(set(texts)) < len(texts):  # for example two arms whose joints have the same names
        texts = [f"{part.name}.{text}" for part, inner in zip(parts, own, strict=True) for text in inner]
    if len(set(texts)) < len(texts) or any(len(text) > LONGEST_TEXT or not text for text in texts):
        return None
    units, frames = ([getattr(part, what) for part in parts for _ in range(part.size)] for what in ("unit", "frame"))
    return Dimensions(tuple(texts), tuple(units) if any(units) else (), tuple(frames) if any(frames) else ())


def find_unused(columns: Sequence[Column], chosen: Mapping[str, Sequence[str]]) -> list[Unused]:
    """Return every column that no field uses, and the reason."""
    used = {name for names in chosen.values() for name in names}
    return [Unused(each.name, each.words, each.why or NOT_NAMED) for each in columns if each.name not in used]
