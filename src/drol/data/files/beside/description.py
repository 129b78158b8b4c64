"""A description of the steps of a folder, read from small JSON files of the tool that wrote it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drol.data.actions import ActionBox
from drol.data.files.columns import Column
from drol.errors import InputError

LARGEST = 1 << 24  # bytes of a description
MOST_LINES = 100_000


@dataclass(frozen=True)
class Description:
    """What a folder says of its steps.

    Attributes:
        path: The file that says it.
        names: The names of the numbers of some columns.
        others: Columns that lie in other files, which are not read.
        reasons: Why some columns are not used, by name.
        box: The box of actions.
        has_final: Whether each file is an episode whose last row only holds the final observation.
        notes: What to know.
    """

    path: Path
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: Sequence[Column] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    box: ActionBox | None = None
    has_final: bool = False
    notes: tuple[str, ...] = ()


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; raise `InputError` if it is none, or larger than any description."""
    try:
        return json.loads(read_limited(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({str(error)[:100]}); write it again, or name the files alone"
        ) from error


def read_limited(path: Path) -> bytes:
    """Return the bytes of a plain file that may not be large."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise InputError(f"{path} is no plain file of at most {LARGEST:,} bytes; write it again")
    return path.read_bytes()


def find_above(path: Path, name: str, levels: int) -> Path | None:
    """Return the nearest file of this name in the folders above a file."""
    return next((folder / name for folder in list(path.parents)[:levels] if (folder / name).is_file()), None)
