"""The formats of our own files: the one place that says which versions of them this drol writes and reads.

A format gets a new number when older code could not read it rightly. Every number that was released stays readable:
`tests/stored` holds files of each release, which the tests open.
"""

from pathlib import Path
from typing import Any

from drol.errors import InputError

# What is written now, and what is read. Checkpoints and policies are both folders of arrays with a manifest.
WRITTEN = {"run": 1, "checkpoint": 1, "dataset": 3}
READ = {"run": (1,), "checkpoint": (1,), "dataset": (2, 3)}


def check_format(kind: str, path: Path, found: Any) -> None:
    """Raise `InputError` for a format that this drol does not read; it says what to do.

    Args:
        kind: A kind of file: a name in `WRITTEN`.
        path: The file, for the message.
        found: The number that it gives as its format.
    """
    if type(found) is int and found in READ[kind]:
        return
    read = " and ".join(map(str, READ[kind]))
    if type(found) is int and found > WRITTEN[kind]:
        raise InputError(
            f"{path} has format {found} of a {kind}, and this drol reads {read}: a newer drol wrote it, "
            "so install that one (pip install --upgrade drol); nothing was changed"
        )
    raise InputError(f"{path} has format {found!r} of a {kind}; this drol reads {read}")
