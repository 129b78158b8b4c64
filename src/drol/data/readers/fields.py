"""Choose the columns of a file for each field of a step, and join them."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from drol.data.actions import ActionBox
from drol.data.clock import TIME_NAMES
from drol.data.dimensions import Dimensions
from drol.data.import_options import FIELDS
from drol.data.readers.columns import ATTRIBUTE, OTHER, TEXT, VIDEO, Column, Unused, dimensions_of, find_unused
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError

BLOCK_BYTES = 1 << 23  # bytes read at once; an import needs a few times this much memory
BLOCK_STEPS = 1 << 16
IGNORE = "none"  # the user passes this instead of a name to disable the field

# Usual names of each field: first drol's, then the names of D4RL, Gymnasium and Minari, and LeRobot.
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
}
TEXT_FIELDS = ("episode", "time")  # fields that may be text
PARTLY_GUESSED = ("observation", "action")  # fields for which a guess that may miss columns is an error
BESIDE = {"observation.state": "observation.environment_state"}  # LeRobot: the robot's state, and its environment's


class StepFile(ABC):
    """A file whose steps are read in blocks."""

    path: Path
    columns: list[Column]  # all columns of the file
    chosen: dict[str, list[str]]  # the arrays or columns of each field, to be concatenated
    nbytes: int  # uncompressed size of the data to read, as the file declares it
    notes: tuple[str, ...] = ()  # automatic decisions, reported to the user
    box: ActionBox | None = None  # action bounds, if the file or its metadata has them
    is_episode: bool = False  # whether the format stores one episode in each file

    @property
    def unused(self) -> list[Unused]:
        """The unused columns of the file, and the reasons."""
        return find_unused(self.columns, self.chosen)

    def keep_steps(self, lengths: Mapping[str, int]) -> None:
        """Drop chosen columns whose number of rows differs from the most common one, the number of steps."""
        steps = Counter(lengths.values()).most_common(1)[0][0] if lengths else 0
        others = {name: f"it has {rows:,} rows, the steps {steps:,}" for name, rows in lengths.items() if rows != steps}
        self.chosen = {field: names for field, names in self.chosen.items() if not set(names) & others.keys()}
        self.columns = [replace(each, why=others.get(each.name, each.why)) for each in self.columns]

    def dimensions(self, field: str) -> Dimensions | None:
        """Return the names, units and frames of the numbers of a field; None for images."""
        return dimensions_of(self.chosen[field], {column.name: column for column in self.columns})

    @property
    def names(self) -> dict[str, str]:
        """The name in the file of each field, to display."""
        return {field: shorten(names) for field, names in self.chosen.items()}

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        """Yield the steps in order, block by block, each with the fraction of the file that has been read."""


def shorten(names: Sequence[str]) -> str:
    """Return several names as one short text."""
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}" if len(names) > 3 else ", ".join(names)


def choose_fields(
    columns: Sequence[Column], mapping: Mapping[str, Sequence[str]] | None, path: Path
) -> dict[str, list[str]]:
    """Return the columns of each field: the names given in `mapping`, else the usual names.

    Without a mapping, return every readable column as a field with the column's name.
    """
    if mapping is None:
        return {column.name: [column.name] for column in columns if column.is_readable}
    available = [column.name for column in columns if column.kind != ATTRIBUTE]
    chosen: dict[str, list[str]] = {}
    for field in FIELDS:
        if field in mapping:
            given = list(mapping[field])
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
            raise InputError(
                f"{path}: cannot tell which column is the {field}; it has {quote(available)}; name it with --{field}"
            )
    return chosen


def find_usual(field: str, columns: Sequence[Column], path: Path) -> list[str]:
    """Return the columns with a usual name of a field; raise `InputError` if they are ambiguous."""
    usable = [column for column in columns if column.kind not in (ATTRIBUTE, VIDEO)]
    if field in ("time", "success", "held_out"):  # a single number whose name is exactly a usual name
        single = [column.name for column in usable if column.size == 1]
        return [next(alias for alias in ALIASES[field] if alias in single)] if set(ALIASES[field]) & set(single) else []
    available = [column.name for column in usable]
    found = {alias: names for alias in ALIASES[field] if (names := find_names(alias, usable, path))}
    candidates = list(found)
    if field in PARTLY_GUESSED and len(found) == 1 and found[candidates[0]] == candidates:
        candidates += find_numbered(candidates[0], available, path)
    if len(candidates) > 1:
        raise InputError(
            f"{path}: both {candidates[0]!r} and {candidates[1]!r} may be the {field}; "
            f"say which with --{field.replace('_', '-')}"
        )
    names = found[candidates[0]] if candidates else []
    if field in PARTLY_GUESSED and names and names == find_numbered(candidates[0], available, path):
        check_no_relative(field, candidates[0], names, usable, path)
    beside = BESIDE.get(names[0]) if names and field == "observation" else None
    return [*names, beside] if beside in available else names


def expand(name: str, columns: Sequence[Column], path: Path) -> list[str]:
    """Return the columns that a given name denotes; `prefix*` denotes all vectors with this prefix."""
    available = [column.name for column in columns if column.kind != ATTRIBUTE]
    if name.endswith("*") and name not in available:
        found = take_vectors(name, [each for each in columns if each.name.startswith(name[:-1])], path)
    else:
        found = find_names(name, columns, path)
    if not found:
        raise InputError(f"{path} has no {name!r}; it has {quote(available)}")
    return found


def find_names(name: str, columns: Sequence[Column], path: Path) -> list[str]:
    """Return the column `name` if it exists; else name0, name_1, name[2], ...; else all of the group name/..."""
    available = [column.name for column in columns if column.kind != ATTRIBUTE]
    if name in available:
        return [name]
    family = find_numbered(name, available, path) or [each for each in available if each.startswith(f"{name}/")]
    by_name = {column.name: column for column in columns}
    return take_vectors(name, [by_name[each] for each in family], path)


def take_vectors(name: str, family: Sequence[Column], path: Path) -> list[str]:
    """Return the names of the vectors in a family of columns; if there are none, return all names.

    Images and videos are dropped, since they cannot be joined with vectors. A column that holds text, or that cannot
    be read, raises `InputError`, since it may be a vector with a damaged value.
    """
    family = [column for column in family if column.kind != ATTRIBUTE]
    vectors = [column.name for column in family if column.is_vector]
    for column in family if vectors else ():
        if column.kind in (TEXT, OTHER):
            why = column.why or column.words
            raise InputError(
                f"{path}: column {column.name!r} belongs to {name!r} but does not hold numbers ({why}); "
                "correct it, or name the columns one by one without it"
            )
    return vectors or [column.name for column in family]


def find_next(observation: Sequence[str], available: Sequence[str]) -> list[str]:
    """Return next_obs/x for each obs/x if all of them exist, else an empty list."""
    inner = [name.partition("/")[2] for name in observation]
    groups = [[f"{alias}/{name}" for name in inner] for alias in ALIASES["next_observation"]]
    return next((names for names in groups if all(inner) and set(names) <= set(available)), [])


def check_no_relative(field: str, alias: str, names: Sequence[str], usable: Sequence[Column], path: Path) -> None:
    """Raise `InputError` if a vector beside guessed numbered columns may belong to them: obs_x beside obs0, obs1."""
    pattern = re.compile(re.escape(alias) + "[^a-z].*", re.IGNORECASE | re.DOTALL)
    for column in usable:
        if column.is_vector and column.name not in names and pattern.fullmatch(column.name):
            flag = f"--{field} {alias}"
            raise InputError(
                f"{path}: column {column.name!r} may belong to the {field}, beside {shorten(names)}; {flag} takes only "
                f"the numbered columns, --{field} '{alias}*' takes all"
            )


def find_numbered(name: str, available: Sequence[str], path: Path) -> list[str]:
    """Return the columns name0, name_1, name[2], ..., sorted by number.

    Raise `InputError` for a name that differs only by case, spaces or a unit, since the column may be one of them.
    """
    pattern = re.compile(re.escape(name) + r"[._]?\[?(\d+)\]?")
    similar = re.compile(re.escape(name) + r"[\s._-]*[\[(]?\d+[\])]?\s*([\[(].*[\])])?", re.IGNORECASE | re.DOTALL)
    numbers: dict[int, str] = {}
    for match in filter(None, map(pattern.fullmatch, available)):
        other = numbers.setdefault(int(match[1]), match[0])
        if other != match[0]:
            raise InputError(
                f"{path}: columns {other!r} and {match[0]!r} are both number {match[1]} of {name!r}; "
                "name the columns one by one"
            )
    odd = [each for each in available if similar.fullmatch(each) and each not in numbers.values()]
    if numbers and odd:
        raise InputError(
            f"{path}: column {odd[0]!r} may be one of {name!r}, beside {next(iter(numbers.values()))!r}, but is "
            "written in another way; rename it, or name the columns one by one"
        )
    return [numbers[number] for number in sorted(numbers)]


def quote(names: Sequence[str], limit: int = 12) -> str:
    """Return the first `limit` names in quotation marks, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(map(repr, names[:limit])) or "nothing") + more


def join_fields(parts: Mapping[str, np.ndarray], chosen: Mapping[str, Sequence[str]]) -> Arrays:
    """Return the fields of a block; each joins arrays [steps] or [steps, n] along the last axis.

    Args:
        parts: The arrays by their names in the file.
        chosen: The names of each field.
    """
    return {field: join_arrays([parts[name] for name in names], names) for field, names in chosen.items()}


def join_arrays(parts: Sequence[np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Join arrays [steps] and [steps, n] along their last axis; return a single array unchanged."""
    if len(parts) == 1:
        return parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.ndim > 2:
            raise InputError(
                f"{name!r} has steps of shape {list(part.shape[1:])}, which cannot be joined with "
                f"{quote([each for each in names if each != name])}; give only this column, or only numbers and vectors"
            )
    return np.concatenate([part[:, None] if part.ndim == 1 else part for part in parts], axis=-1)


def steps_in_block(bytes_of_a_step: int) -> int:
    """Return the number of steps to read at once."""
    return min(BLOCK_STEPS, max(1, BLOCK_BYTES // max(1, bytes_of_a_step)))


def common_length(path: Path, lengths: Mapping[str, int]) -> int:
    """Return the common length of all arrays; raise `InputError` if lengths differ."""
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{path}: the arrays have different numbers of steps ({found}); they must be equal")
    return next(iter(lengths.values()))
