"""Read steps from CSV files with `pyarrow.csv`, block by block; each line is a step, the first line is the header."""

import csv
import gzip
import importlib
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from drol.data.readers import fields
from drol.data.readers.arrow_tables import import_pyarrow
from drol.data.readers.columns import NUMBERS, TEXT, Column, split_unit
from drol.data.readers.fields import TEXT_FIELDS, StepFile, choose_fields, join_fields
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError

LONGEST_LINE = 1 << 20  # bytes
FLAGS = {"true": 1.0, "false": 0.0}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
SAMPLE_BYTES = 1 << 18
SAMPLE_LINES = 100  # lines that determine the separator and the type of each column
LARGEST_RATIO = 200  # ratio of text to compressed bytes; logs of numbers reach 20
FREE_BYTES = 1 << 26  # bytes of text that any compressed file may have; above this, `LARGEST_RATIO` applies


@dataclass(frozen=True)
class Dialect:
    """The separator and the decimal sign of a file."""

    separator: str
    decimal_comma: bool

    def __str__(self) -> str:
        comma = ", numbers have a decimal comma" if self.decimal_comma else ""
        return f"columns are separated by {SEPARATORS[self.separator]}{comma}"


class CSVFile(StepFile):
    """A CSV file with columns of numbers or booleans; episodes and times may be text."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None):
        import_pyarrow()
        self.path, self.nbytes = path, path.stat().st_size
        with self.open() as (file, _):
            lines = self.split(next(self.read_blocks(file, SAMPLE_BYTES), b""))[: 1 + SAMPLE_LINES]
        self.dialect = find_dialect(lines)
        header = [name.strip() for name in next(self.cells(lines[:1]), [])]
        header = [name or f"(column {number})" for number, name in enumerate(header, 1)]
        named = [split_unit(name) for name in header]
        if len({name for name, _ in named}) < len(named):
            named = [(name, "") for name in header]
        self.header = [name for name, _ in named]
        if len(self.header) != len(set(self.header)):
            raise InputError(f"{path}: two columns have the same name; the first line must name each column once")
        rows = [row for row in self.cells(lines[1:]) if row]
        samples = [[row[number] for row in rows if number < len(row)] for number in range(len(self.header))]
        self.flags = {name for name, cells in zip(self.header, samples, strict=True) if self.are_flags(cells)}
        self.columns = [self.describe(*each, cells) for each, cells in zip(named, samples, strict=True)]
        self.chosen = choose_fields(self.columns, mapping, path)
        self.texts = self.find_texts(mapping is None)
        if self.dialect != Dialect(",", False):
            self.notes = (str(self.dialect),)

    def describe(self, name: str, unit: str, cells: Sequence[str]) -> Column:
        """Describe a column by its sample cells.

        A column is text only if no sample cell is a number. Otherwise an invalid cell raises an error when it is read.
        """
        filled = [cell for cell in cells if cell.strip()]
        is_text = bool(filled) and not any(is_number(cell, self.dialect) for cell in filled)
        kind = TEXT if is_text else NUMBERS
        return Column(
            name, kind, words=kind, unit=unit, why=f"it is text such as {filled[0][:20]!r}" if is_text else ""
        )

    def find_texts(self, everything: bool) -> set[str]:
        """Return the columns to read as text; raise `InputError` for text where numbers are needed."""
        columns = {column.name: column for column in self.columns}
        texts = set(self.chosen.get("episode", []))
        for field, names in self.chosen.items():
            for name in names:
                if columns[name].kind == TEXT and (everything or field in TEXT_FIELDS):
                    texts.add(name)
                elif columns[name].kind == TEXT:
                    raise InputError(f"{self.path}: column {name!r} must hold numbers; {columns[name].why}")
        return texts

    @staticmethod
    def are_flags(cells: Sequence[str]) -> bool:
        """Return whether a column contains the words true or false."""
        return any(cell.strip().lower() in FLAGS for cell in cells)

    def cells(self, lines: Sequence[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.dialect.separator)

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Yield the uncompressed file, and the raw file, whose position measures progress."""
        with self.path.open("rb") as raw:
            is_packed = self.path.suffix.lower() == ".gz"
            unpacked: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
            try:
                yield unpacked, raw
            except (OSError, EOFError, zlib.error) as error:
                if not is_packed:
                    raise
                raise InputError(f"{self.path} is not a valid gzip file ({error}); fetch or write it again") from error

    def read_blocks(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        """Yield complete lines, about `size` bytes at a time."""
        rest, done, most = b"", 0, max(FREE_BYTES, LARGEST_RATIO * self.nbytes)
        while chunk := file.read(size):
            done += len(chunk)
            if done > most:
                raise InputError(f"{self.path} unpacks to more than {LARGEST_RATIO} times its size; unpack it first")
            block, end, rest_of_chunk = chunk.rpartition(b"\n")
            if not end:
                rest += chunk
            else:
                yield rest + block + end
                rest = rest_of_chunk
            if len(rest) > LONGEST_LINE:
                raise InputError(
                    f"{self.path} has a line of more than {LONGEST_LINE:,} bytes; it is not a CSV file of steps"
                )
        if rest:
            yield rest

    def split(self, block: bytes) -> list[str]:
        """Return the lines of a block."""
        return re.split(r"\r\n|\r|\n", self.decode(block))

    def decode(self, block: bytes) -> str:
        try:
            return block.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not text in UTF-8 ({error.reason}); save it as a CSV file") from error

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        first = 1
        with self.open() as (file, raw):
            for block in self.read_blocks(file, max(1, fields.BLOCK_BYTES // 4)):
                lines = block.count(b"\n") + (not block.endswith(b"\n"))
                if first == 1:
                    block = block.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[2]
                parts = self.read(block, first + (first == 1)) if block.strip() else {}
                first += lines
                if parts:
                    yield join_fields(parts, self.chosen), min(1.0, raw.tell() / max(1, self.nbytes))

    def read(self, block: bytes, first: int) -> Arrays:
        """Return the used columns [lines] of a block that begins with the line number `first`."""
        pyarrow = import_pyarrow()
        reader: Any = importlib.import_module("pyarrow.csv")
        used = list(dict.fromkeys(name for names in self.chosen.values() for name in names))
        types = {name: pyarrow.bool_() if name in self.flags else pyarrow.float64() for name in used}
        try:
            table = reader.read_csv(
                pyarrow.BufferReader(block),
                reader.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.header),
                reader.ParseOptions(delimiter=self.dialect.separator),
                reader.ConvertOptions(
                    column_types=types | dict.fromkeys(self.texts, pyarrow.string()),
                    include_columns=used,
                    null_values=[""],
                    decimal_point="," if self.dialect.decimal_comma else ".",
                ),
            )
        except (pyarrow.ArrowException, UnicodeDecodeError):
            return self.read_carefully(block, used, first)
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        if table.num_rows != lines and table.num_rows != sum(1 for line in block.splitlines() if line):
            raise InputError(f"{self.path}: {find_open_quote(self.split(block), first)}")
        parts = {name: table.column(name).combine_chunks() for name in used}
        texts = {name: [text.strip() for text in parts.pop(name).to_pylist()] for name in self.texts}
        if any("" in each for each in texts.values()):
            return self.read_carefully(block, used, first)
        numbers = {name: part.cast(pyarrow.float64()) for name, part in parts.items()}
        return {name: np.asarray(each, np.str_) for name, each in texts.items()} | {
            name: part.to_numpy(zero_copy_only=False) for name, part in numbers.items()
        }

    def read_carefully(self, block: bytes, used: Sequence[str], first: int) -> Arrays:
        """Do the same as `read`, cell by cell; raise `InputError` with the line and column of an invalid cell."""
        values: dict[str, list[Any]] = {name: [] for name in used}
        position = {name: number for number, name in enumerate(self.header)}
        rows = csv.reader(io.StringIO(self.decode(block), newline=""), delimiter=self.dialect.separator)
        try:
            for cells in rows:
                where = f"{self.path}: line {first + rows.line_num - 1}"
                if cells and len(cells) != len(self.header):
                    raise InputError(f"{where}: {len(cells)} columns; the first line names {len(self.header)}")
                for name in used if cells else ():
                    text = cells[position[name]].strip(" \t\r\n")
                    if name in self.texts and not text:
                        raise InputError(f"{where}: column {name!r} is empty; write a text in every line")
                    try:
                        values[name].append(text if name in self.texts else read_number(text, self.dialect))
                    except ValueError as error:
                        raise InputError(
                            f"{where}: column {name!r} has {text[:40]!r}; write a number, or leave the cell empty"
                        ) from error
        except csv.Error as error:
            raise InputError(f"{self.path}: line {first + rows.line_num}: {error}; save it as a CSV file") from error
        return {name: np.asarray(each, np.str_ if name in self.texts else np.float64) for name, each in values.items()}


def find_dialect(lines: Sequence[str]) -> Dialect:
    """Return the dialect of a file, detected from its first lines."""
    header = lines[0] if lines else ""
    separator = max(SEPARATORS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))
    cells = [cell for row in csv.reader(lines[1:], delimiter=separator) for cell in row]
    commas = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    points = any("." in cell and is_number(cell, Dialect(separator, False)) for cell in cells)
    return Dialect(separator, commas and not points)


def read_number(text: str, dialect: Dialect) -> float:
    """Return the number in a cell: NaN if it is empty, 1 or 0 for true or false; raise `ValueError` for other text."""
    text = text.strip(" \t\r\n")  # `strip()` would also remove other characters
    if not text:
        return float("nan")
    flag = FLAGS.get(text.lower())
    if flag is not None:
        return flag
    if "_" in text or not text.isascii():  # Python would accept 1_000 and digits of other scripts
        raise ValueError(text)
    if dialect.decimal_comma and "." in text:  # the point may separate thousands
        raise ValueError(text)
    return float(text.replace(",", ".") if dialect.decimal_comma else text)


def is_number(text: str, dialect: Dialect) -> bool:
    try:
        read_number(text, dialect)
    except ValueError:
        return False
    return True


def find_open_quote(lines: Sequence[str], first: int) -> str:
    """Return an error message that names the line with an unclosed quotation mark, if there is one."""
    for number, line in enumerate(lines, first):
        if line.count('"') % 2:
            return f"line {number}: a quotation mark is not closed in its line; write each step on one line"
    return f"lines {first} and after: the lines are not rows of one table; write each step on one line"
