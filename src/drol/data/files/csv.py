"""CSV files: a line is a step, the first line names the columns."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from drol.data.files.fields import StepFile, choose_fields, steps_in_block
from drol.data.rows import Arrays
from drol.errors import InputError

LONGEST_LINE = 1 << 20
FLAG_LETTERS = 16  # that are looked at
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


class CSVFile(StepFile):
    """Columns of numbers; flags may be true and false."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]]):
        self.path = path
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(self.lines(file), "")
        columns = [name.strip() for name in next(csv.reader([header]), [])]
        if len(columns) != len(set(columns)):
            raise InputError(f"{path}: two columns have the same name; the first line must name each column once")
        self.chosen = choose_fields(columns, mapping, path)
        self.columns = columns
        self.nbytes = path.stat().st_size

    def lines(self, file: TextIO) -> Iterator[str]:
        """Yield the lines of the file; raise `InputError` for one without an end."""
        try:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise InputError(
                        f"{self.path} has a line of more than {LONGEST_LINE} letters; it is no CSV of steps"
                    )
                if "\0" in line:  # NumPy would drop it at the end of a text
                    raise InputError(f"{self.path} has a null among its letters; it is damaged or no text")
                yield line
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not text in UTF-8 ({error.reason}); save it as a CSV file") from error

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        used = [name for names in self.chosen.values() for name in names]
        flags = {name for field in ("terminal", "timeout", "end") for name in self.chosen.get(field, ())}
        positions = [self.columns.index(name) for name in used]
        is_flag = np.asarray([name in flags for name in used])
        count, line = steps_in_block(8 * len(used)), 2
        with self.path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            lines = self.lines(file)
            next(lines, None)
            while batch := [each for _, each in zip(range(count), lines, strict=False)]:
                try:
                    values = load_columns(batch, np.asarray(positions), is_flag)
                except (ValueError, IndexError) as error:
                    raise InputError(f"{self.path}: {self.explain(batch, positions, line, error)}") from error
                line += len(batch)
                if len(values):
                    done = raw.tell() / max(1, self.nbytes)
                    yield self.block(values), min(1.0, done)

    def block(self, values: np.ndarray) -> Arrays:
        """Return the columns [steps, columns] as fields."""
        arrays, first = {}, 0
        for field, names in self.chosen.items():
            arrays[field] = values[:, first : first + len(names)]
            first += len(names)
        return arrays

    def explain(self, batch: Sequence[str], positions: Sequence[int], first: int, error: Exception) -> str:
        """Return which line is the first that cannot be read, and why."""
        for number, cells in enumerate(csv.reader(batch), first):
            if cells and len(cells) <= max(positions):
                return f"line {number} has {len(cells)} columns where the first line names {len(self.columns)}"
            for position in positions if cells else ():
                try:
                    float(cells[position]) if cells[position].strip().lower() not in FLAGS else 0
                except ValueError:
                    return (
                        f"line {number} has {cells[position]!r} in the column {self.columns[position]!r}; "
                        "it must be a number (nan where there is none)"
                    )
        return str(error)


def load_columns(lines: Sequence[str], positions: np.ndarray, is_flag: np.ndarray) -> np.ndarray:
    """Return columns of lines as numbers [lines, columns].

    Flags are read as text: NumPy would call a converter of ours, and take Ctrl-C in it for an error of the file.
    """
    if not any(line.strip("\r\n") for line in lines):
        return np.empty((0, len(positions)))  # NumPy would warn
    options: dict[str, Any] = {"delimiter": ",", "ndmin": 2, "quotechar": '"', "comments": None}
    numbers = np.loadtxt(lines, usecols=positions[~is_flag].tolist(), **options)
    values = np.empty((len(numbers), len(positions)))
    values[:, ~is_flag] = numbers
    if is_flag.any():
        texts = np.loadtxt(lines, usecols=positions[is_flag].tolist(), dtype=f"U{FLAG_LETTERS}", **options)
        known = {text: read_flag(text) for text in set(texts.ravel().tolist())}
        values[:, is_flag] = np.reshape([known[text] for text in texts.ravel().tolist()], texts.shape)
    return values


def read_flag(text: str) -> float:
    """Return 1 or 0; NaN for anything that is no flag, which is refused later."""
    cut_off = len(text) >= FLAG_LETTERS
    return float("nan") if cut_off else FLAGS.get(text.strip().lower(), float("nan"))
