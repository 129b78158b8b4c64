"""CSV files: a line is a step, the first line names the columns; with commas, semicolons, tabs or bars between."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from drol.data.files.columns import NUMBERS, TEXT, Column, split_unit
from drol.data.files.fields import StepFile, choose_fields, steps_in_block
from drol.data.rows import Arrays
from drol.errors import InputError

LONGEST_LINE = 1 << 20
FLAG_LETTERS = 16  # that are looked at
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
SEPARATORS = (",", ";", "\t", "|")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
LOOKED_AT = 100  # lines, for the kind of each column
LARGEST_RATIO = 200  # of the text to the bytes of a packed file; logs of numbers reach 20
FREE_BYTES = 1 << 26  # of text that a packed file may hold whatever its size
FLAG_FIELDS = ("terminal", "timeout", "end", "held_out", "success")


@dataclass(frozen=True)
class Dialect:
    """How the cells of a file are written."""

    separator: str
    decimal_comma: bool

    def __str__(self) -> str:
        between = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[self.separator]
        return f"columns are separated by {between}" + (", numbers have a decimal comma" if self.decimal_comma else "")

    def cells(self, lines: Sequence[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.separator)

    def numbers(self, lines: Sequence[str]) -> Sequence[str]:
        """Return lines in which numbers have a decimal point."""
        return [line.replace(",", ".") for line in lines] if self.decimal_comma else lines


class CSVFile(StepFile):
    """Columns of numbers; flags may be true and false, episodes and times may be text."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]]):
        self.path = path
        self.nbytes = path.stat().st_size
        with self.open() as (file, _):
            lines = [line for _, line in zip(range(1 + LOOKED_AT), self.lines(file), strict=False)]
        self.dialect = find_dialect(lines)
        first = next(self.dialect.cells(lines[:1]), [])
        self.headers = [name.strip() for name in first]
        named = [split_unit(name) for name in self.headers]
        if len({name for name, _ in named}) < len(named):
            named = [(name, "") for name in self.headers]
        names = [name for name, _ in named]
        if len(names) != len(set(names)):
            raise InputError(f"{path}: two columns have the same name; the first line must name each column once")
        cells = [row for row in self.dialect.cells(lines[1:]) if row]
        kinds = [self.kind_of([row[number] for row in cells if number < len(row)]) for number in range(len(names))]
        self.columns = [
            Column(name, kind, words=kind, unit=unit, why="it is text" if kind == TEXT else "")
            for (name, unit), kind in zip(named, kinds, strict=True)
        ]
        self.chosen = choose_fields(self.columns, mapping, path)
        if self.dialect != Dialect(",", False):
            self.notes = (f"{self.dialect}",)

    def kind_of(self, cells: Sequence[str]) -> str:
        """Return whether cells are numbers (empty ones are), flags, or text."""
        for cell in cells:
            try:
                read_cell(cell, self.dialect.decimal_comma)
            except ValueError:
                return TEXT
        return NUMBERS

    @contextmanager
    def open(self) -> Iterator[tuple[TextIO, BinaryIO]]:
        """Open the text of the file, and the bytes on the disk, which tell how much is read."""
        with self.path.open("rb") as raw:
            unpacked: Any = gzip.GzipFile(fileobj=raw) if self.path.suffix.lower() == ".gz" else raw
            try:
                with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as text:
                    yield text, raw
            except (OSError, EOFError, zlib.error) as error:
                if unpacked is raw:
                    raise
                raise InputError(f"{self.path} is not a whole gzip file ({error}); fetch or write it again") from error

    def lines(self, file: TextIO) -> Iterator[str]:
        """Yield the lines of the file; raise `InputError` for one without an end."""
        letters, most = 0, max(FREE_BYTES, LARGEST_RATIO * self.nbytes)
        try:
            while line := file.readline(LONGEST_LINE):
                letters += len(line)
                if len(line) == LONGEST_LINE:
                    raise InputError(
                        f"{self.path} has a line of more than {LONGEST_LINE} letters; it is no CSV of steps"
                    )
                if "\0" in line:  # NumPy would drop it at the end of a text
                    raise InputError(f"{self.path} has a null among its letters; it is damaged or no text")
                if letters > most:
                    raise InputError(
                        f"{self.path} unpacks to more than {LARGEST_RATIO} times its size; unpack it first"
                    )
                yield line
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not text in UTF-8 ({error.reason}); save it as a CSV file") from error

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        place = {column.name: number for number, column in enumerate(self.columns)}
        kinds = {column.name: column.kind for column in self.columns}
        groups: dict[str, list[str]] = {"number": [], "flag": [], "text": []}
        for field, names in self.chosen.items():
            is_text = field == "episode" or (field == "time" and TEXT in [kinds[name] for name in names])
            groups["text" if is_text else "flag" if field in FLAG_FIELDS else "number"] += names
        groups = {kind: list(dict.fromkeys(names)) for kind, names in groups.items()}
        positions = {kind: [place[name] for name in names] for kind, names in groups.items()}
        count, line = steps_in_block(8 * sum(map(len, groups.values()))), 2
        with self.open() as (file, raw):
            lines = self.lines(file)
            next(lines, None)
            while batch := [each for _, each in zip(range(count), lines, strict=False)]:
                columns = self.load(batch, groups, positions, line)
                line += len(batch)
                if len(next(iter(columns.values()))):
                    yield self.block(columns), min(1.0, raw.tell() / max(1, self.nbytes))

    def load(
        self, batch: list[str], groups: Mapping[str, list[str]], positions: Mapping[str, list[int]], first: int
    ) -> dict[str, np.ndarray]:
        """Return the columns [lines] by name, those that hold text apart from those that hold numbers."""
        if not any(line.strip("\r\n") for line in batch):
            return {name: np.empty(0) for names in groups.values() for name in names}  # NumPy would warn
        self.refuse_long_lines(batch, first)
        loaded: dict[str, np.ndarray] = {}
        try:
            numbers = load_numbers(self.dialect.numbers(batch), positions["number"], self.dialect)
        except (ValueError, IndexError):
            numbers = self.load_carefully(batch, positions["number"], first)
        loaded |= zip(groups["number"], numbers.T, strict=True)
        try:
            flags = load_flags(batch, positions["flag"], self.dialect)
        except (ValueError, IndexError) as error:
            raise InputError(f"{self.path}: {self.explain(batch, positions['flag'], first, error)}") from error
        loaded |= zip(groups["flag"], flags.T, strict=True)
        if positions["text"]:
            loaded |= zip(groups["text"], self.load_texts(batch, positions["text"], first), strict=True)
        return loaded

    def refuse_long_lines(self, batch: Sequence[str], first: int) -> None:
        """Raise `InputError` for a line with more cells than the first one: its values would stand in wrong columns."""
        most = len(self.columns)
        for number, line in enumerate(batch, first):
            if line.count(self.dialect.separator) >= most:
                cells = next(self.dialect.cells([line]), [])
                if any(cell.strip() for cell in cells[most:]):
                    found = f"line {number} has {len(cells)} columns where the first line names {most}"
                    raise InputError(f"{self.path}: {found}; each line must have as many")

    def load_carefully(self, batch: list[str], positions: list[int], first: int) -> np.ndarray:
        """Return numbers [lines, columns] of lines some of whose cells are empty: they are NaN."""
        rows = [cells for cells in self.dialect.cells(batch) if cells]
        try:
            values = [
                [read_cell(cells[position], self.dialect.decimal_comma) for position in positions] for cells in rows
            ]
        except (ValueError, IndexError) as error:
            raise InputError(f"{self.path}: {self.explain(batch, positions, first, error)}") from error
        return np.asarray(values, np.float64).reshape(len(rows), len(positions))

    def load_texts(self, batch: list[str], positions: list[int], first: int) -> list[np.ndarray]:
        """Return columns of text; every line must have one."""
        columns: list[list[str]] = [[] for _ in positions]
        for number, cells in enumerate(self.dialect.cells(batch), first):
            for column, position in zip(columns, positions, strict=True) if cells else ():
                text = cells[position].strip() if position < len(cells) else ""
                if not text:
                    name = self.columns[position].name
                    raise InputError(f"{self.path}: line {number} has nothing in the column {name!r}; it must have")
                column.append(text)
        return [np.asarray(column, np.str_) for column in columns]

    def block(self, columns: Mapping[str, np.ndarray]) -> Arrays:
        """Return the fields of columns [steps]."""
        return {
            field: np.stack([columns[name] for name in names], -1) if len(names) > 1 else columns[names[0]][:, None]
            for field, names in self.chosen.items()
        }

    def explain(self, batch: Sequence[str], positions: Sequence[int], first: int, error: Exception) -> str:
        """Return which line is the first that cannot be read, and why."""
        for number, cells in enumerate(self.dialect.cells(batch), first):
            if cells and positions and len(cells) <= max(positions):
                return f"line {number} has {len(cells)} columns where the first line names {len(self.columns)}"
            for position in positions if cells else ():
                try:
                    read_cell(cells[position], self.dialect.decimal_comma)
                except ValueError:
                    return (
                        f"line {number} has {cells[position]!r} in the column {self.columns[position].name!r}; "
                        "it must be a number (nothing or nan where there is none)"
                    )
        return str(error)


def find_dialect(lines: Sequence[str]) -> Dialect:
    """Return how the cells of a file are written, by its first line and some more."""
    header = lines[0] if lines else ""
    separator = max(SEPARATORS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))
    cells = [cell for row in csv.reader(lines[1:], delimiter=separator) for cell in row]
    commas = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    points = any("." in cell and is_number(cell) for cell in cells)
    return Dialect(separator, commas and not points)


def read_cell(text: str, decimal_comma: bool = False) -> float:
    """Return the number in a cell: NaN for an empty one, 1 or 0 for true or false; raise `ValueError` for others."""
    text = text.strip(" \t\r\n")  # not what else Python takes for space
    text = text.replace(",", ".") if decimal_comma else text
    if not text:
        return float("nan")
    flag = FLAGS.get(text.lower())
    if flag is not None:
        return flag
    if "_" in text:  # Python takes 1_000 for a number
        raise ValueError(text)
    return float(text)


def is_number(text: str) -> bool:
    try:
        read_cell(text)
    except ValueError:
        return False
    return True


def load_numbers(lines: Sequence[str], positions: list[int], dialect: Dialect) -> np.ndarray:
    """Return columns of lines as numbers [lines, columns]; raise `ValueError` where a cell is none."""
    if not positions:
        return np.empty((0, 0))
    return np.loadtxt(lines, usecols=positions, **options_of(dialect))


def load_flags(lines: Sequence[str], positions: list[int], dialect: Dialect) -> np.ndarray:
    """Return columns of flags as numbers [lines, columns], NaN for anything that is no flag, which is refused later.

    Flags are read as text: NumPy would call a converter of ours, and take Ctrl-C in it for an error of the file.
    """
    if not positions:
        return np.empty((0, 0))
    texts = np.loadtxt(lines, usecols=positions, dtype=f"U{FLAG_LETTERS}", **options_of(dialect))
    known = {text: read_flag(text) for text in set(texts.ravel().tolist())}
    return np.reshape([known[text] for text in texts.ravel().tolist()], texts.shape)


def options_of(dialect: Dialect) -> dict[str, Any]:
    return {"delimiter": dialect.separator, "ndmin": 2, "quotechar": '"', "comments": None}


def read_flag(text: str) -> float:
    """Return 1 or 0; NaN for anything that is no flag."""
    cut_off = len(text) >= FLAG_LETTERS
    return float("nan") if cut_off else FLAGS.get(text.strip().lower(), float("nan"))
