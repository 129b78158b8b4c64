"""The fields of a step: which of a file's arrays or columns hold them, and the shape and type that each must have."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions
from drol.data.files.columns import ATTRIBUTE, NUMBERS, VIDEO, Column, Unused, dimensions_of, find_unused
from drol.data.files.options import FIELDS
from drol.data.files.rules.clock import TIME_NAMES
from drol.data.rows import Arrays
from drol.errors import InputError

BLOCK_BYTES = 1 << 23  # read at once; an import needs a few times this much memory
BLOCK_STEPS = 1 << 16
IGNORE = "none"  # in place of a name: the field is not to be read

# Usual names of each field: first drol's own, then those of D4RL, Gymnasium and Minari, LeRobot.
ALIASES = {
    "observation": ("observation", "observations", "obs", "state", "states", "observation.state"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards", "next.reward"),
    "terminal": ("terminal", "terminals", "terminated", "termination", "terminations"),
    "timeout": ("timeout", "timeouts", "truncated", "truncation", "truncations"),
    "end": ("end", "ends", "done", "dones", "next.done"),
    "episode": ("episode", "episodes", "episode_id", "episode_index"),
    "next_observation": ("next_observation", "next_observations", "next_obs"),
    "time": TIME_NAMES,
    "held_out": ("held_out",),
    "success": ("success", "is_success", "next.success"),
    "formula": (),  # the columns that a formula names
}
TEXT_FIELDS = ("episode", "time")  # that may be text
BESIDE = {"observation.state": "observation.environment_state"}  # LeRobot's: what the robot is, what is around it


class StepFile(ABC):
    """A file whose steps are read in blocks."""

    path: Path
    columns: list[Column]  # everything that is in the file
    chosen: dict[str, list[str]]  # the arrays or columns of each field, joined side by side
    nbytes: int  # size of everything that is read, unpacked, as far as the file says
    notes: tuple[str, ...] = ()  # what was decided without being asked for
    box: ActionBox | None = None  # of actions, where the file or one beside it says it
    is_episode: bool = False  # whether such a file holds one episode, by its format

    @property
    def unused(self) -> list[Unused]:
        """What is in the file and is not used, and why."""
        return find_unused(self.columns, self.chosen)

    def dimensions(self, field: str) -> Dimensions | None:
        """Return what the numbers of a field are called; None for images."""
        return dimensions_of(self.chosen[field], {column.name: column for column in self.columns})

    def parts_of_formula(self, names: Sequence[str]) -> dict[str, slice]:
        """Return which of the joined columns of the field "formula" each name stands for."""
        first, starts = 0, {}
        columns = {column.name: column for column in self.columns}
        for name in self.chosen.get("formula", []):
            starts[name] = first
            first += columns[name].size
        parts = {}
        for name in names:
            column, number = locate(name, self.columns, self.path)
            begin = starts[column.name] + (number or 0)
            parts[name] = slice(begin, begin + (column.size if number is None else 1))
        return parts

    @property
    def names(self) -> dict[str, str]:
        """The name in the file of each field, for people."""
        return {field: shorten(names) for field, names in self.chosen.items()}

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        """Yield the steps in order, a block at a time, each with the share of the file that is then read."""


def shorten(names: Sequence[str]) -> str:
    """Return several names as one text."""
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}" if len(names) > 3 else ", ".join(names)


def choose_fields(columns: Sequence[Column], mapping: Mapping[str, Sequence[str]], path: Path) -> dict[str, list[str]]:
    """Return the names in a file that hold each field: the names given in `mapping`, else the usual ones."""
    available = [column.name for column in columns if column.kind != ATTRIBUTE]
    chosen: dict[str, list[str]] = {}
    for field in FIELDS:
        if field in mapping:
            given = list(mapping[field])
            if field == "formula":
                names = list(dict.fromkeys(locate(name, columns, path)[0].name for name in given))
            else:
                names = [] if given == [IGNORE] else [each for name in given for each in expand(name, columns, path)]
        else:
            names = find_usual(field, columns, path)
        if field == "next_observation" and field not in mapping:
            names = find_next(chosen.get("observation", []), available) or [each for each in names if "/" not in each]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: {twice!r} is named twice for the {field}; name each column once")
        if names:
            chosen[field] = names
    for field in ("observation", "action"):
        if field not in chosen:
            raise InputError(f"{path}: which is the {field}? It has {quote(available)}; say it with --{field}")
    return chosen


def find_usual(field: str, columns: Sequence[Column], path: Path) -> list[str]:
    """Return the columns that have a usual name of a field; raise `InputError` if two of them may be meant."""
    usable = [column for column in columns if column.kind not in (ATTRIBUTE, VIDEO)]
    if field in ("time", "success", "held_out"):  # one column of this very name; others are not guessed
        single = [column.name for column in usable if column.size == 1]
        return [next(alias for alias in ALIASES[field] if alias in single)] if set(ALIASES[field]) & set(single) else []
    available = [column.name for column in usable]
    found = [alias for alias in ALIASES[field] if find_names(alias, available)]
    if len(found) > 1:
        raise InputError(
            f"{path}: both {found[0]!r} and {found[1]!r} may be the {field}; say which with --{field.replace('_', '-')}"
        )
    names = without_images(find_names(found[0], available), usable) if found else []
    beside = BESIDE.get(names[0]) if names and field == "observation" else None
    return [*names, beside] if beside in available else names


def without_images(names: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Return the names of vectors, where there are some; images and texts cannot be joined with them."""
    vectors = {column.name for column in columns if column.is_vector}
    return [name for name in names if name in vectors] or list(names)


def locate(name: str, columns: Sequence[Column], path: Path) -> tuple[Column, int | None]:
    """Return the column that a name of a formula stands for, and which number of it; None: all of them."""
    for column in columns:
        if column.kind not in (NUMBERS,):
            continue
        if column.name == name:
            return column, None
    for column in columns:
        own = column.own_names() if column.is_vector else []
        numbered = [f"{column.name}[{number}]" for number in range(column.size)] if column.is_vector else []
        for names in (own, numbered):
            if name in names:
                return column, names.index(name)
    raise InputError(f"{path} has no column {name!r}; it has {quote([each.name for each in columns])}")


def expand(name: str, columns: Sequence[Column], path: Path) -> list[str]:
    """Return the names in the file that a given name stands for; `prefix*` stands for all vectors that begin so."""
    available = [column.name for column in columns if column.kind != ATTRIBUTE]
    if name.endswith("*") and name not in available:
        found = [each for each in available if each.startswith(name[:-1])]
    else:
        found = find_names(name, available)
    if not found:
        raise InputError(f"{path} has no {name!r}; it has {quote(available)}")
    return found if found == [name] else without_images(found, columns)


def find_names(name: str, available: Sequence[str]) -> list[str]:
    """Return a name that is there; else the columns name0, name_1, name[2], ...; else all of a group: name/..."""
    if name in available:
        return [name]
    return find_numbered(name, available) or [each for each in available if each.startswith(f"{name}/")]


def find_next(observation: Sequence[str], available: Sequence[str]) -> list[str]:
    """Return next_obs/x for each obs/x, where all of them are there."""
    inner = [name.partition("/")[2] for name in observation]
    groups = [[f"{alias}/{name}" for name in inner] for alias in ALIASES["next_observation"]]
    return next((names for names in groups if all(inner) and set(names) <= set(available)), [])


def find_numbered(name: str, available: Sequence[str]) -> list[str]:
    """Return the columns name0, name_1, name[2], ... in the order of their numbers."""
    pattern = re.compile(re.escape(name) + r"[._]?\[?(\d+)\]?")
    numbers = {int(match[1]): match[0] for each in available if (match := pattern.fullmatch(each))}
    return [numbers[number] for number in sorted(numbers)]


def quote(names: Sequence[str], limit: int = 12) -> str:
    """Return the first of some names in quotation marks, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(map(repr, names[:limit])) or "nothing") + more


def join_fields(parts: Mapping[str, np.ndarray], chosen: Mapping[str, Sequence[str]]) -> Arrays:
    """Return the fields of a block, of the arrays [steps] and [steps, n] that each is joined from along the last axis.

    Args:
        parts: The arrays by their names in the file.
        chosen: The names of each field.
    """
    return {field: join_arrays([parts[name] for name in names], names) for field, names in chosen.items()}


def join_arrays(parts: Sequence[np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Return arrays [steps] and [steps, n] joined along their last axis; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.ndim > 2:
            raise InputError(
                f"{name!r} has steps of shape {list(part.shape[1:])}, which cannot be joined with "
                f"{quote([each for each in names if each != name])}; name it alone, or vectors only"
            )
    return np.concatenate([part[:, None] if part.ndim == 1 else part for part in parts], axis=-1)


def steps_in_block(bytes_of_a_step: int) -> int:
    """Return how many steps are read at once."""
    return min(BLOCK_STEPS, max(1, BLOCK_BYTES // max(1, bytes_of_a_step)))


def common_length(path: Path, lengths: Mapping[str, int]) -> int:
    """Return the length that all arrays have; raise `InputError` if they differ."""
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{path}: the arrays have different numbers of steps ({found}); they must be equal")
    return next(iter(lengths.values()))
