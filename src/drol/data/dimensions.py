"""Names, units and frames of reference of the numbers in an observation or an action."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drol.decoding import convert
from drol.errors import InputError

LARGEST = 4096  # the longest vector whose numbers have names
LONGEST_TEXT = 200

Observation = ArrayLike | Mapping[str, Any]  # numbers in their order, or by their names


@dataclass(frozen=True)
class Dimensions:
    """The name of each number of an observation or an action, in the order that the policy uses.

    docs/data.md explains names and units.

    Attributes:
        names: A unique name for each number.
        units: A unit for each number, such as "rad" or "m/s", or "" where it is unknown. May be empty.
        frames: The frame of reference of each number, such as "base" or "world", or "" where it is unknown. May be
            empty.

    Example:
        >>> import drol
        >>> arm = drol.Dimensions(("shoulder", "elbow"), units=("rad", "rad"))
        >>> arm.take({"elbow": 0.5, "shoulder": 0.1}).tolist()
        [0.1, 0.5]
    """

    names: tuple[str, ...]
    units: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what in ("names", "units", "frames"):
            texts = tuple(getattr(self, what))
            object.__setattr__(self, what, texts)
            if not all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts):
                raise InputError(f"{what} are texts of up to {LONGEST_TEXT} letters; {str(texts)[:80]} are not")
            if what != "names" and texts and len(texts) != len(self.names):
                raise InputError(f"there are {len(texts)} {what} for {len(self.names)} names; give one for each")
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None or "" in self.names:
            raise InputError(f"the name {twice or ''!r} is repeated or empty; every number needs a unique name")

    def to_dict(self) -> dict[str, list[str]]:
        """Return the names, units and frames as lists."""
        return {what: list(texts) for what, texts in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Any, size: int | None = None) -> "Dimensions | None":
        """Return the dimensions from `to_dict` (None for None); raise `InputError` if their number is not `size`."""
        found: Dimensions | None = convert(content, Dimensions | None)
        if found and size is not None and len(found.names) != size:
            raise InputError(f"there are {len(found.names)} names for {size} numbers; there must be one for each")
        return found

    def take(self, values: Mapping[str, Any]) -> np.ndarray:
        """Stack named numbers in order along the last axis; raise `InputError` for missing or unknown names."""
        odd = [name for name in values if name not in self.names] + [name for name in self.names if name not in values]
        if odd:
            known = ", ".join(self.names[:32]) + (", ..." if len(self.names) > 32 else "")
            what = "has an unknown" if odd[0] in values else "lacks the"
            raise InputError(f"the observation {what} name {str(odd[0])!r}; this policy takes {known}")
        reject_masked(*(values[name] for name in self.names))
        try:
            return np.stack([np.asarray(values[name]) for name in self.names], -1)
        except ValueError as error:
            raise InputError(f"the named values have different shapes ({error}); each must be a number") from error

    def describe(self) -> list[str]:
        """Return each name with its unit and frame."""
        units, frames = (texts or ("",) * len(self.names) for texts in (self.units, self.frames))
        return [
            name + (f" [{unit}]" if unit else "") + (f" in {frame}" if frame else "")
            for name, unit, frame in zip(self.names, units, frames, strict=True)
        ]


def in_order(observation: Observation, dimensions: Dimensions | None) -> ArrayLike:
    """Return an observation as numbers in order; a mapping must have exactly the names of `dimensions`."""
    if not isinstance(observation, Mapping):
        return observation
    if dimensions is None:
        raise InputError("this policy knows no names of observations; give the numbers in the order of the data")
    return dimensions.take(observation)


def reject_masked(*values: Any) -> None:
    """Raise an error for masked arrays, since NumPy would drop the mask and use the values under it."""
    if any(isinstance(each, np.ma.MaskedArray) for each in values):
        raise InputError("the observation is a masked array; decide what a masked value means and give a plain array")


def named_or_numbered(dimensions: Dimensions | None, what: str, size: int) -> list[str]:
    """Return names to display: the names in `dimensions`, else "observation 0", "observation 1", ..."""
    if dimensions is not None and len(dimensions.names) == size:
        return list(dimensions.names)
    return [what] if size == 1 else [f"{what} {number}" for number in range(size)]


@dataclass(frozen=True)
class Naming:
    """Names, units and coordinate frames that the user gives; they replace those of the files.

    A single unit or frame applies to every number.
    """

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    def applied(self, found: Dimensions | None, what: str, size: int) -> Dimensions | None:
        """Return the dimensions of `size` numbers from a file, overridden by the user's names, units and frames."""
        if not (self.names or self.units or self.frames):
            return found
        names = self.names or (found.names if found else ())
        if len(names) != size:
            raise InputError(f"--{what}-names gives {len(names)} names for {size} numbers; give one for each")
        texts = {}
        for kind in ("units", "frames"):
            given = getattr(self, kind)
            texts[kind] = given * size if len(given) == 1 else given or (getattr(found, kind) if found else ())
            if texts[kind] and len(texts[kind]) != size:
                raise InputError(
                    f"--{what}-{kind} gives {len(given)} for {size} numbers; give one for each, or for all"
                )
        return Dimensions(names, **texts)
