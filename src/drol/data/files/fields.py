"""The fields of a step: which of a file's arrays or columns hold them, and the shape and type that each must have."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from drol.data.actions import ActionBox
from drol.data.files.options import FIELDS
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
}


class StepFile(ABC):
    """A file whose steps are read in blocks."""

    path: Path
    chosen: dict[str, list[str]]  # the arrays or columns of each field, joined side by side
    nbytes: int  # size of everything that is read, unpacked, as far as the file says

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


def choose_fields(available: Sequence[str], mapping: Mapping[str, Sequence[str]], path: Path) -> dict[str, list[str]]:
    """Return the names in a file that hold each field: the names given in `mapping`, else the usual ones."""
    chosen = {}
    for field in FIELDS:
        if field in mapping:
            given = list(mapping[field])
            names = [] if given == [IGNORE] else [each for name in given for each in expand(name, available, path)]
        else:
            found = [alias for alias in ALIASES[field] if find_names(alias, available)]
            if len(found) > 1:
                raise InputError(
                    f"{path}: both {found[0]!r} and {found[1]!r} may be the {field}; say which with "
                    f"--{field.replace('_', '-')}"
                )
            names = find_names(found[0], available) if found else []
        if field == "next_observation" and field not in mapping:
            names = find_next(chosen.get("observation", []), available) or [each for each in names if "/" not in each]
        if names:
            chosen[field] = names
    for field in ("observation", "action"):
        if field not in chosen:
            raise InputError(f"{path}: which is the {field}? It has {quote(available)}; say it with --{field}")
    return chosen


def expand(name: str, available: Sequence[str], path: Path) -> list[str]:
    """Return the names in the file that a given name stands for; `prefix*` stands for all that begin so."""
    if name.endswith("*") and name not in available:
        found = [each for each in available if each.startswith(name[:-1])]
    else:
        found = find_names(name, available)
    if not found:
        raise InputError(f"{path} has no {name!r}; it has {quote(available)}")
    return found


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


def to_flag(name: str, array: np.ndarray) -> np.ndarray:
    """Return a mark of ends as booleans [steps]."""
    array = to_column(name, array)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{name} is {array.dtype} with values such as "
            f"{next((value for value in array.tolist() if value not in (0, 1)), array[0])!r}; "
            "it must be true or false, 1 or 0"
        )
    return array.astype(bool)


def to_column(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array [steps] or [steps, 1] as [steps]."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} has shape {list(array.shape)}; it must be one number for each step")
    return array


def to_numbers(field: str, name: str, array: np.ndarray, box: ActionBox | None) -> np.ndarray:
    """Return observations, actions or rewards as float32, images as the bytes that they are.

    Args:
        field: One of `FIELDS`.
        name: Its name in the file, for messages.
        array: Its values.
        box: The box that actions are scaled from, if they are.
    """
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is {array.dtype}; it must hold plain numbers")
    if field == "action" and array.dtype.kind != "f" and box is None:
        raise InputError(
            f"{name} is {array.dtype}; actions must be continuous (floats in [-1, 1]); "
            "for whole numbers on a scale give the scale with --action-low and --action-high"
        )
    if field == "reward":
        array = to_column(name, array)
    elif array.ndim == 1:
        array = array[:, None]
    if field == "action" and array.ndim != 2:
        raise InputError(f"{name} has shape {list(array.shape)}; it must be [steps, action size]")
    if array.size == 0 and len(array):
        raise InputError(f"{name} has shape {list(array.shape)}; a step must have a number")
    if field in ("observation", "next_observation") and array.ndim > 2:
        if array.ndim != 4 or array.dtype != np.uint8:
            raise InputError(
                f"{name} is {array.dtype} of shape {list(array.shape)}; it must be vectors "
                "[steps, size] or images of bytes [steps, height, width, channels]"
            )
        return array
    if field == "action" and box is not None:
        if array.shape[1] != len(box.low):
            raise InputError(f"{name} has {array.shape[1]} dimensions; the action box has {len(box.low)}")
        array = box.to_unit(array)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float32)
