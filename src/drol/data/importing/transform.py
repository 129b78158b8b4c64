"""Apply a Python function of the user to the columns of each file before they are interpreted as steps."""

import dataclasses
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from drol.data.readers import open_steps
from drol.data.readers.columns import IMAGE, NUMBERS, TEXT, Column, Unused, describe_shape
from drol.data.readers.fields import StepFile, choose_fields, join_fields, steps_in_block
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError
from drol.machine import bytes_in_words, free_memory

Function = Callable[[Arrays], Mapping[str, Any]]
COPIES = 3  # copies of a file's columns in memory: blocks, joined columns, the columns that the function returns


@dataclasses.dataclass(frozen=True)
class Transform:
    """A function from the columns of a file to the columns to import.

    The function receives a dict from the name of each column to its array [steps] or [steps, ...] of one file, and
    returns a dict of the same form. The returned arrays must all have one row for each step.

    Attributes:
        name: The module and the function, "module:function".
        function: The function.
        sha256: The SHA-256 of its source file; "" if there is none.
    """

    name: str
    function: Function
    sha256: str

    @classmethod
    def load(cls, given: str | Function) -> "Transform":
        """Return a transform from a function, or from its name "module:function".

        The module is imported from the current folder or from the installed packages.
        """
        if not isinstance(given, str):
            name = f"{getattr(given, '__module__', None)}:{getattr(given, '__qualname__', type(given).__name__)}"
            return cls(name, given, hash_source(given))
        module_name, colon, function_name = given.partition(":")
        if not (colon and module_name and function_name):
            raise InputError(f"--transform is {given!r}; it must be module:function, such as my_data:add_reward")
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise InputError(f"--transform {given}: module {error.name!r} is neither here nor installed") from error
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"--transform {given}: to import {module_name} raised {describe_error(error)}") from error
        function: Any = getattr(module, function_name, None)
        if not callable(function):
            raise InputError(f"--transform {given}: the module {module_name} has no function {function_name!r}")
        return cls(given, cast(Any, function), hash_source(function))

    def to_dict(self) -> dict[str, str]:
        """Return the record of the transform in a manifest."""
        return {"name": self.name, "sha256": self.sha256}

    def __call__(self, columns: Arrays, path: Path) -> Arrays:
        """Apply the function to the columns of a file; check the names, types and lengths of the result."""
        where = f"{path}: the transform {self.name}"
        try:
            result = self.function(columns)
        except Exception as error:
            raise InputError(f"{where} raised {describe_error(error)}") from error
        if not isinstance(result, Mapping) or not all(isinstance(name, str) for name in result):
            raise InputError(f"{where} returned {type(result).__name__}; it must return a dict of arrays by name")
        arrays = {}
        for name, value in result.items():
            try:
                arrays[name] = np.asarray(value)
            except ValueError as error:
                raise InputError(f"{where} returned steps of different shapes in {name!r} ({error})") from error
            if not arrays[name].ndim or arrays[name].dtype.kind not in "biufUM":
                kind = f"{arrays[name].dtype} of shape {list(arrays[name].shape)}"
                raise InputError(
                    f"{where} returned {kind} as {name!r}; it must be an array of numbers, texts or times "
                    "with a row for each step"
                )
        if len({len(array) for array in arrays.values()}) > 1:
            found = ", ".join(f"{name} {len(array)}" for name, array in list(arrays.items())[:8])
            raise InputError(f"{where} returned columns of different lengths ({found}); they must be equal")
        return arrays


def hash_source(function: Any) -> str:
    """Return the SHA-256 of the source file of a function; "" if there is none, as in a notebook."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except (TypeError, OSError):
        return ""


def describe_error(error: Exception) -> str:
    """Return an error as one line, with the line of the user's code that raised it."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code if traceback else None
    line = f" ({Path(code.co_filename).name}, line {traceback.tb_lineno})" if code and traceback else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}{line}"


class TransformedFile(StepFile):
    """A file with a transform applied to its columns; all columns are in memory while it is read.

    Args:
        path: The file.
        mapping: The names of some fields, among the columns that the transform returns.
        transform: The transform.
        keep: Whether to keep the columns in memory, so that the file is read only once.
    """

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]], transform: Transform, keep: bool = True):
        self.path, self.transform = path, transform
        self.file = open_steps(path, mapping, everything=True)
        self.nbytes, self.box, self.is_episode = self.file.nbytes, self.file.box, self.file.is_episode
        free = free_memory()
        if free is not None and COPIES * self.nbytes > free:
            raise InputError(
                f"{path} holds {bytes_in_words(self.nbytes)}; a transform takes {COPIES} times as much memory, and "
                f"{bytes_in_words(free)} are free; split the file"
            )
        arrays = self.load()
        self.arrays = arrays if keep else None  # if not kept, each pass calls the function again
        known = {column.name: column for column in self.file.columns}
        self.columns = [describe_array(name, array, known.get(name)) for name, array in arrays.items()]
        self.notes = (*self.file.notes, f"the columns are those that the transform {transform.name} returns")
        self.chosen = choose_fields(self.columns, mapping, path)

    @property
    def unused(self) -> list[Unused]:
        inside = {column.name for column in self.columns} | self.file.chosen.keys()
        gone = sorted(self.file.chosen.keys() - {column.name for column in self.columns})
        words = {column.name: column.words for column in self.file.columns}
        return [
            *super().unused,
            *(Unused(name, words.get(name, ""), "the transform does not return it") for name in gone),
            *(each for each in self.file.unused if each.name not in inside),
        ]

    def load(self) -> Arrays:
        """Read all columns of the file and apply the function to them."""
        blocks = [block for block, _ in self.file.blocks()]
        names = blocks[0] if blocks else {}
        return self.transform({name: np.concatenate([block[name] for block in blocks]) for name in names}, self.path)

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        arrays = self.arrays if self.arrays is not None else self.load()
        columns = {column.name for column in self.columns}
        if arrays.keys() != columns:
            odd = sorted(arrays.keys() ^ columns)[0]
            raise InputError(f"{self.path}: the transform {self.transform.name} returned {odd!r} in one of two calls")
        used = {name: arrays[name] for names in self.chosen.values() for name in names}
        steps = len(next(iter(used.values())))
        count = steps_in_block(sum(array.nbytes for array in used.values()) // max(1, steps))
        for start in range(0, steps, count):
            parts = {name: array[start : start + count] for name, array in used.items()}
            yield join_fields(parts, self.chosen), min(1.0, (start + count) / steps)


def describe_array(name: str, array: np.ndarray, before: Column | None) -> Column:
    """Describe an array as a column; keep the names and units of `before` if it has the same kind and shape."""
    shape = array.shape[1:]
    kind = TEXT if array.dtype.kind in "UM" else IMAGE if len(shape) == 3 and array.dtype == np.uint8 else NUMBERS
    words = describe_shape(str(array.dtype), shape)
    why = "it is text" if kind == TEXT else ""
    if before is not None and (before.kind, before.shape) == (kind, shape):
        return dataclasses.replace(before, words=words)
    return Column(name, kind, shape, words, why=why)
