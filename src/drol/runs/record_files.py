"""Read and rewrite files of rows, one JSON line per row; malformed lines are logged and quarantined."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple

from drol.decoding import convert, parse_json
from drol.errors import InputError
from drol.runs.records import AnyRow, Rows
from drol.storage import write_whole

NAMED = 3  # maximum number of malformed lines of a file that are reported one by one
BEGINNING = re.compile(rb'\{"step": ([0-9]{1,13}),')  # the beginning of every row


logger = logging.getLogger(__name__)


class Line(NamedTuple, Generic[AnyRow]):
    """A line of a file with its row; a malformed line has a fault instead of a row."""

    number: int  # from 1
    text: bytes
    row: AnyRow | None
    fault: str = ""


def read_rows(path: Path, kind: type[AnyRow]) -> Rows[AnyRow]:
    """Read the rows of a JSON-lines file; skip a last line without a line break, and log other malformed lines."""
    lines, _ = read_lines(path, kind)
    for words in name_faults(path, lines):
        logger.warning(words)
    return Rows(line.row for line in lines if line.row is not None)


def rewrite(
    path: Path,
    kind: type[AnyRow],
    keep: Callable[[AnyRow], bool],
    whole: int = 0,
    forgotten: Path | None = None,
    added: bytes = b"",
) -> int:
    """Rewrite a file with the rows to keep, byte for byte, and quarantine malformed lines.

    Malformed lines are appended to `NAME.jsonl.bad` beside the file, and logged. Removed lines are first written to
    their new place, so that a kill loses none of them.

    Args:
        path: The file.
        kind: The type of its rows.
        keep: Returns whether to keep a row.
        whole: Rows up to this step are known to have been written completely, so a truncated one was damaged later and
            is quarantined. A truncated row after this step may come from a kill, and is removed silently.
        forgotten: The folder for the removed rows; None to discard them.
        added: Further lines for the end of the file.

    Returns:
        The number of quarantined lines.
    """
    lines, tail = read_lines(path, kind)
    if tail and (match := BEGINNING.match(tail)) and int(match[1]) <= whole:
        lines.append(Line(len(lines) + 1, tail, None, "cut off"))
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
    for words in name_faults(path, lines):
        logger.warning(f"{words}; set aside in {path.name}.bad")
    return sum(line.row is None for line in lines)


def read_lines(path: Path, kind: type[AnyRow]) -> tuple[list[Line[AnyRow]], bytes]:
    """Return the lines of a file, and the bytes after the last line break."""
    try:
        *texts, tail = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], b""
    return [read_line(number, text, kind) for number, text in enumerate(texts, 1)], tail


def read_line(number: int, text: bytes, kind: type[AnyRow]) -> Line[AnyRow]:
    try:
        values = convert(parse_json(text, nan=True), dict[str, Any], extra=True)
        return Line(number, text, kind.from_dict(values))
    except InputError as error:
        return Line(number, text, None, str(error))


def name_faults(path: Path, lines: list[Line[AnyRow]]) -> list[str]:
    """Return a sentence for each of the first `NAMED` malformed lines of a file, and one sentence for the rest."""
    bad = [line for line in lines if line.row is None]
    words = [f"{path}: line {line.number}: {line.fault}" for line in bad[:NAMED]]
    return [*words, f"{path}: {len(bad) - NAMED:,} more lines are not rows"] if len(bad) > NAMED else words
