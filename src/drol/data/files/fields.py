"""What every format offers, and which of a file's arrays or columns stand for which field."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from drol.data.files.episodes import Arrays
from drol.data.files.options import FIELDS
from drol.errors import InputError

BLOCK_BYTES = 1 << 23  # read at once; an import needs a few times this much memory
BLOCK_STEPS = 1 << 16
IGNORE = "none"  # in place of a name: the field is not to be read

# What a field is called where nobody said so; the first column is ours, then D4RL, Gymnasium and Minari, LeRobot.
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


class Source(ABC):
    """A file of steps."""

    path: Path
    chosen: dict[str, list[str]]  # the arrays or columns of each field, joined side by side
    nbytes: int  # of all that is read, unpacked, as far as the file says

    @property
    def names(self) -> dict[str, str]:
        """Each field by its name in the file."""
        return {field: shorten(names) for field, names in self.chosen.items()}

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        """The steps in order, some at a time, and the share of the file that is then done."""


def shorten(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}" if len(names) > 3 else ", ".join(names)


def choose(available: Sequence[str], mapping: Mapping[str, Sequence[str]], path: Path) -> dict[str, list[str]]:
    """Which names stand for which field: those that were given, else those that are usual."""
    chosen = {}
    for field in FIELDS:
        if field in mapping:
            given = list(mapping[field])
            names = [] if given == [IGNORE] else [each for name in given for each in expand(name, available, path)]
        else:
            found = [alias for alias in ALIASES[field] if find(alias, available)]
            if len(found) > 1:
                raise InputError(
                    f"{path}: both {found[0]!r} and {found[1]!r} may be the {field}; say which with "
                    f"--{field.replace('_', '-')}"
                )
            names = find(found[0], available) if found else []
        if field == "next_observation" and field not in mapping:
            names = names_of_next(chosen.get("observation", []), available) or [
                each for each in names if "/" not in each
            ]
        if names:
            chosen[field] = names
    for field in ("observation", "action"):
        if field not in chosen:
            raise InputError(f"{path}: which is the {field}? It has {listed(available)}; say it with --{field}")
    return chosen


def expand(name: str, available: Sequence[str], path: Path) -> list[str]:
    """What a name that was given stands for; `prefix*`: all that begin so, in their order."""
    if name.endswith("*") and name not in available:
        found = [each for each in available if each.startswith(name[:-1])]
    else:
        found = find(name, available)
    if not found:
        raise InputError(f"{path} has no {name!r}; it has {listed(available)}")
    return found


def find(name: str, available: Sequence[str]) -> list[str]:
    """A name as it is; else the columns name0, name_1, name[2], ...; else all of a group: name/..."""
    if name in available:
        return [name]
    return numbered(name, available) or [each for each in available if each.startswith(f"{name}/")]


def names_of_next(observation: Sequence[str], available: Sequence[str]) -> list[str]:
    """next_obs/x for each obs/x, where all of them are there."""
    inner = [name.partition("/")[2] for name in observation]
    groups = [[f"{alias}/{name}" for name in inner] for alias in ALIASES["next_observation"]]
    return next((names for names in groups if all(inner) and set(names) <= set(available)), [])


def numbered(name: str, available: Sequence[str]) -> list[str]:
    pattern = re.compile(re.escape(name) + r"[._]?\[?(\d+)\]?")
    numbers = {int(match[1]): match[0] for each in available if (match := pattern.fullmatch(each))}
    return [numbers[number] for number in sorted(numbers)]


def listed(names: Sequence[str], limit: int = 12) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(map(repr, names[:limit])) or "nothing") + more


def side_by_side(parts: Sequence[np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Arrays [steps] and [steps, n] joined along their last axis; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.ndim > 2:
            raise InputError(
                f"{name!r} has steps of shape {list(part.shape[1:])}, which cannot be joined with "
                f"{listed([each for each in names if each != name])}; name it alone, or vectors only"
            )
    return np.concatenate([part[:, None] if part.ndim == 1 else part for part in parts], axis=-1)


def block_steps(bytes_of_a_step: int) -> int:
    return min(BLOCK_STEPS, max(1, BLOCK_BYTES // max(1, bytes_of_a_step)))


def equal_length(path: Path, lengths: Mapping[str, int]) -> int:
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{path}: the arrays have different numbers of steps ({found}); they must be equal")
    return next(iter(lengths.values()))
