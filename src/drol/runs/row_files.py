"""Rows on the disk: a line of JSON each. A line that is no row is named and set aside, and the others are used."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple

from drol.errors import InputError
from drol.runs.rows import AnyRow, Rows
from drol.storage import write_whole

NAMED = 3  # bad lines of a file that are named one by one
BEGINNING = re.compile(rb'\{"step": ([0-9]{1,13}),')  # of every row


class Line(NamedTuple, Generic[AnyRow]):
    """A line of a file and the row that it is; None and a fault if it is none."""

    number: int  # from 1
    text: bytes
    row: AnyRow | None
    fault: str = ""


def read_rows(path: Path, kind: type[AnyRow]) -> Rows[AnyRow]:
    """Read the rows of a JSON-lines file; a last line that a kill cut off is left out, other bad lines are named."""
    lines, _ = read_lines(path, kind)
    return Rows((line.row for line in lines if line.row is not None), name_faults(path, lines))


def rewrite(
    path: Path,
    kind: type[AnyRow],
    keep: Callable[[AnyRow], bool],
    whole: int = 0,
    forgotten: Path | None = None,
    added: bytes = b"",
) -> list[str]:
    """Write a file anew with the rows that are to be kept, byte for byte, and set lines aside that are no rows.

    These go to `NAME.jsonl.bad` beside it. Whatever leaves the file is written elsewhere first, so that a kill loses
    none of it.

    Args:
        path: The file.
        kind: The type of its rows.
        keep: Says of a row whether it is kept.
        whole: The step up to which rows are known to have been written whole: one of them that is cut off was damaged
            later. A row after it may have been cut off by a kill, and is left out without a word.
        forgotten: The folder for the rows that are not kept; None if they may go.
        added: Further lines, for the end of the file.

    Returns:
        What is said of the lines that were set aside.
    """
    lines, tail = read_lines(path, kind)
    if tail and (match := BEGINNING.match(tail)) and int(match[1]) <= whole:
        lines.append(Line(len(lines) + 1, tail, None, "is cut off"))
    bad = b"".join(line.text + b"\n" for line in lines if line.row is None)
    if bad:
        aside = path.with_name(f"{path.name}.bad")
        write_whole(aside, (aside.read_bytes() if aside.is_file() else b"") + bad)
    kept = b"".join(line.text + b"\n" for line in lines if line.row is not None and keep(line.row))
    left = b"".join(line.text + b"\n" for line in lines if line.row is not None and not keep(line.row))
    if left and forgotten is not None:
        forgotten.mkdir(parents=True, exist_ok=True)
        write_whole(forgotten / path.name, left)
    if bad or left or tail or added:
        write_whole(path, kept + added)
    return [f"{words}; set aside in {path.name}.bad" for words in name_faults(path, lines)]


def read_lines(path: Path, kind: type[AnyRow]) -> tuple[list[Line[AnyRow]], bytes]:
    """Return the lines of a file, and what follows the last line break."""
    try:
        *texts, tail = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], b""
    return [read_line(number, text, kind) for number, text in enumerate(texts, 1)], tail


def read_line(number: int, text: bytes, kind: type[AnyRow]) -> Line[AnyRow]:
    try:
        values: Any = json.loads(text.decode())
    except UnicodeDecodeError:
        return Line(number, text, None, "is not text")
    except (ValueError, RecursionError) as error:
        return Line(number, text, None, f"is not JSON ({error})" if text.strip() else "is empty")
    if not isinstance(values, dict):
        return Line(number, text, None, "is no row")
    try:
        return Line(number, text, kind.from_dict(values))
    except InputError as error:
        return Line(number, text, None, f"is no row ({error})")


def name_faults(path: Path, lines: list[Line[AnyRow]]) -> list[str]:
    """Return a sentence for each of the first bad lines of a file, and one for the rest."""
    bad = [line for line in lines if line.row is None]
    words = [f"line {line.number} of {path} {line.fault}" for line in bad[:NAMED]]
    return [*words, f"{len(bad) - NAMED:,} more lines of {path} are no rows"] if len(bad) > NAMED else words
