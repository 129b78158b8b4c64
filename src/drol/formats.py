"""The version numbers of drol's own file formats.

A format gets a new number when older code cannot read it correctly.
"""

import reprlib
from pathlib import Path
from typing import Any

from drol.errors import InputError

FORMATS = {"run": 1, "checkpoint": 1, "dataset": 4}  # a policy is a checkpoint


def check_format(kind: str, path: Path, found: Any, advice: str = "") -> None:
    """Raise `InputError` for a format that this drol does not read.

    Args:
        kind: A type of file: a name in `FORMATS`.
        path: The file, for the message.
        found: The number that the file gives as its format.
        advice: How to fix an older or unknown format.
    """
    known = FORMATS[kind]
    if type(found) is int and found > known:
        raise InputError(
            f"{path}: format: expected {known} of a {kind}, got {found}: a newer drol wrote it, so install that one "
            "(pip install --upgrade drol); nothing was changed"
        )
    if type(found) is not int or found != known:
        words = f"{path}: format: expected {known} of a {kind}, got {reprlib.repr(found)}"
        raise InputError(f"{words}; {advice}" if advice else words)
