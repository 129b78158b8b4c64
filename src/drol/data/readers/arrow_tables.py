"""Read steps from Parquet and Arrow files: columns of numbers, of lists of numbers, and nested columns."""

import importlib
import mmap
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.columns import ATTRIBUTE, IMAGE, NUMBERS, OTHER, TEXT, Column, describe_shape
from drol.data.readers.fields import TEXT_FIELDS, StepFile, choose_fields, find_usual, join_fields, steps_in_block
from drol.data.readers.metadata import Description
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError

DEEPEST = 4  # levels of nested columns
ARROW_FILE = b"ARROW1"  # the first bytes of Arrow's file format; the stream format has none


def import_pyarrow() -> Any:
    """Return the module pyarrow; if it is missing, raise `InputError` with the command that installs it."""
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(
            "CSV, Parquet and Arrow files need the package pyarrow; install it with: pip install 'drol[tables]'"
        ) from error
    return pyarrow


def import_parquet() -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; raise `InputError` as `import_pyarrow` does."""
    return import_pyarrow(), importlib.import_module("pyarrow.parquet")


class Mapped:
    """A file mapped into memory: if a part declares more bytes than the file has, no memory is allocated for them."""

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self.pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def reader(self) -> Any:
        """Return a pyarrow reader of the file."""
        pyarrow = import_pyarrow()
        return pyarrow.BufferReader(pyarrow.py_buffer(self.pages))

    def let_go(self) -> None:
        """Release the pages that were read; the system reads them again when needed."""
        self.pages.madvise(mmap.MADV_DONTNEED)


class TableFile(StepFile):
    """The columns of one file; images and videos are not read."""

    mapped: Mapped  # the file, once it is open

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None, beside: Description | None = None):
        self.path, self.beside = path, beside
        with self.open() as table:
            schema, self.steps = self.describe(table)
            # The length of lists is read from the first step. Only columns of lists are read, since reading a column
            # of a damaged file can crash pyarrow.
            lists = [item.name for item in schema if may_have_lists(item.type)]
            first = next(self.batches(table, 1, lists), None) if lists else None
            self.columns = self.describe_columns(schema, first)
            if beside is not None:
                self.columns += beside.others
                self.notes, self.box = beside.notes, beside.box
            self.chosen = choose_fields(self.columns, mapping, path)
            if mapping is not None:
                self.refuse_texts()
            self.is_episode = beside is not None and beside.has_final
            observation = find_usual("observation", self.columns, path) if mapping is None else ["observation"]
            self.final = observation if self.is_episode else []
            self.used = sorted({name for names in self.chosen.values() for name in names})
            first = next(self.batches(table, 1, self.top), None)
            values = sum(self.to_array(name, column_of(first, name)).size for name in self.used) if first else 0
        self.nbytes = 4 * values * self.steps

    def refuse_texts(self) -> None:
        """Raise `InputError` for a column that must hold numbers but does not."""
        columns = {column.name: column for column in self.columns}
        for field, names in self.chosen.items():
            for name in names if field not in TEXT_FIELDS else ():
                if columns[name].kind != NUMBERS:
                    words = columns[name].words
                    raise InputError(
                        f"{self.path}: {name} is of the type {words}; it must hold numbers (no images or videos)"
                    )

    @property
    def top(self) -> list[str]:
        """The top-level columns that contain the used columns, and the used columns themselves."""
        return sorted({name.partition("/")[0] for name in self.used} | set(self.used))

    @abstractmethod
    def open(self) -> AbstractContextManager[Any]:
        """Return a context that opens the file and converts errors about its content to `InputError`."""

    @abstractmethod
    def describe(self, table: Any) -> tuple[Any, int]:
        """Return the schema of an open file, and its number of rows."""

    @abstractmethod
    def batches(self, table: Any, count: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the given columns of an open file, at most `count` rows at a time."""

    @property
    def names(self) -> dict[str, str]:
        fields = super().names
        return fields | {f"next_{field}": fields[field] for field in self.final}

    def describe_columns(self, schema: Any, first: Any) -> list[Column]:
        """Describe the columns (nested ones as outer/inner) and the metadata of the schema."""
        columns = []
        for item in schema:
            columns += self.describe_column(item.name, item.type, item.metadata or {}, first, 0)
        return columns + [
            Column(
                key.decode(errors="replace"), ATTRIBUTE, words="attribute of the file", why="attributes are not read"
            )
            for key in schema.metadata or {}
        ]

    def describe_column(self, name: str, kind: Any, metadata: Mapping, first: Any, depth: int) -> list[Column]:
        types = import_pyarrow().types
        if types.is_struct(kind):
            inner = [kind.field(number) for number in range(kind.num_fields)]
            if {each.name for each in inner} == {"bytes", "path"} or depth >= DEEPEST:
                return [Column(name, IMAGE, words="an image", why="images in tables are not read")]
            parts = [self.describe_column(f"{name}/{each.name}", each.type, each.metadata or {}, first, depth + 1)
                     for each in inner]  # fmt: skip
            return [column for part in parts for column in part]
        texts = {what: metadata.get(what.encode(), b"").decode(errors="replace") for what in ("unit", "frame")}
        why = self.beside.reasons.get(name, "") if self.beside else ""
        value, is_list = kind, False
        while types.is_list(value) or types.is_large_list(value) or types.is_fixed_size_list(value):
            value, is_list = value.value_type, True
        if types.is_dictionary(value):
            value = value.value_type
        if types.is_string(value) or types.is_large_string(value):
            return [Column(name, TEXT, words=str(value), why=why or "it is text")]
        if types.is_timestamp(value) or types.is_date(value):
            return [Column(name, TEXT, words=str(value), why=why or "it is a date, which only --time reads", **texts)]
        if not (types.is_floating(value) or types.is_integer(value) or types.is_boolean(value)):
            is_image = types.is_binary(value) or types.is_large_binary(value)
            return [Column(name, IMAGE if is_image else OTHER, words=str(kind), why=why or "it holds no numbers")]
        shape: tuple[int, ...] = ()
        if is_list and first is not None and first.num_rows:
            try:
                shape = self.to_array(name, column_of(first, name)).shape[1:]
            except InputError as error:
                # Describe the column as numbers all the same; reading it raises this error again.
                return [Column(name, words=str(kind), why=str(error).removeprefix(f"{self.path}: "))]
        is_image = len(shape) == 3 and types.is_uint8(value)
        names = self.beside.names.get(name, ()) if self.beside else ()
        names = names if len(names) == prod(shape) else ()
        shown = describe_shape(str(value), shape)
        return [Column(name, IMAGE if is_image else NUMBERS, shape, shown, names=names, why=why, **texts)]

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        done = 0
        held: Arrays | None = None
        with self.open() as table:
            count = steps_in_block(self.nbytes // max(1, self.steps))
            for batch in self.batches(table, count, self.top):
                parts = {name: self.to_array(name, column_of(batch, name)) for name in self.used}
                self.mapped.let_go()
                done += batch.num_rows
                block = join_fields(parts, self.chosen)
                if self.final:  # the newest row waits for the next row; the last row is only an observation
                    block = block if held is None else {key: np.concatenate((held[key], block[key])) for key in held}
                    held = {key: array[-1:] for key, array in block.items()}
                    after = {f"next_{field}": block[field][1:] for field in self.final}
                    block = {key: array[:-1] for key, array in block.items()} | after
                yield block, done / max(1, self.steps)
        if done != self.steps:
            raise InputError(
                f"{self.path} holds {done:,} steps where it declares {self.steps:,}; fetch or write it again"
            )

    def to_array(self, name: str, column: Any) -> np.ndarray:
        """Convert a column to an array [steps] or [steps, ...]; a missing number becomes NaN."""
        pyarrow = import_pyarrow()
        shape, values = [len(column)], column
        while pyarrow.types.is_fixed_size_list(values.type) or pyarrow.types.is_list(values.type):
            shape.append(self.list_length(name, values))
            values = values.flatten()
        kind = values.type
        if pyarrow.types.is_dictionary(kind):
            values = values.dictionary_decode()
            kind = values.type
        if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
            if values.null_count:
                raise InputError(f"{self.path}: {name} has no text in some steps; every step must have one")
            return np.asarray(values.to_pylist(), np.str_).reshape(shape)
        if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind):
            return values.to_numpy(zero_copy_only=False).astype("datetime64[ns]").reshape(shape)
        if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind)):
            raise InputError(
                f"{self.path}: {name} is of the type {column.type}; it must hold numbers (no images or videos)"
            )
        return values.to_numpy(zero_copy_only=False).reshape(shape)

    def list_length(self, name: str, lists: Any) -> int:
        """Return the length of the lists of a column; raise `InputError` if lengths differ or a list is missing."""
        compute: Any = importlib.import_module("pyarrow.compute")
        if lists.null_count:
            raise InputError(f"{self.path}: {name} has no value in some steps; every step must have one")
        if hasattr(lists.type, "list_size"):
            return lists.type.list_size
        bounds = compute.min_max(compute.list_value_length(lists)).as_py()
        if bounds["min"] != bounds["max"]:
            raise InputError(
                f"{self.path}: {name} has lists of {bounds['min']} to {bounds['max']} numbers; all must be equally long"
            )
        return bounds["min"] or 0


class ParquetFile(TableFile):
    """The columns of one Parquet file, as LeRobot, Hugging Face and pandas write them."""

    @contextmanager
    def open(self) -> Iterator[Any]:
        opened = OpenParquet(self.path)
        with opened as table:
            self.mapped = opened.mapped
            yield table

    def describe(self, table: Any) -> tuple[Any, int]:
        return table.schema_arrow, table.metadata.num_rows

    def batches(self, table: Any, count: int, columns: Sequence[str]) -> Iterator[Any]:
        known = [name for name in columns if name in table.schema_arrow.names]
        return table.iter_batches(count, columns=known, use_threads=False)


class OpenParquet:
    """A context that opens a Parquet file and converts errors about its content to `InputError`."""

    def __init__(self, path: Path):
        self.path = path
        self.pyarrow, self.parquet = import_parquet()

    def __enter__(self) -> Any:
        try:
            self.mapped = Mapped(self.path)
            self.file = self.parquet.ParquetFile(
                self.mapped.reader(), pre_buffer=False, page_checksum_verification=True
            )
        except (self.pyarrow.ArrowException, OSError, ValueError) as error:
            raise self.refusal(error) from error
        return self.file

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self.file.close()
        damage = (self.pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError)
        if error is not None and isinstance(error, damage):
            raise self.refusal(error) from error

    def refusal(self, error: BaseException) -> InputError:
        """Return an `InputError` with pyarrow's message as one line."""
        line = " ".join(str(error).split())
        return InputError(f"{self.path} is not a valid Parquet file ({line[:200]}); fetch or write it again")


class ArrowFile(TableFile):
    """The columns of one Arrow file, as Minari and Hugging Face's `save_to_disk` write them."""

    @contextmanager
    def open(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        importlib.import_module("pyarrow.ipc")
        try:
            self.mapped = Mapped(self.path)
            with self.mapped.reader() as source:
                is_file = source.read(len(ARROW_FILE)) == ARROW_FILE
                source.seek(0)
                yield pyarrow.ipc.open_file(source) if is_file else pyarrow.ipc.open_stream(source)
        except InputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
            line = " ".join(str(error).split())[:200]
            raise InputError(f"{self.path} is not a valid Arrow file ({line}); fetch or write it again") from error

    def describe(self, table: Any) -> tuple[Any, int]:
        return table.schema, sum(batch.num_rows for batch in self.stored(table))

    def stored(self, table: Any) -> Iterator[Any]:
        """Yield the stored batches of the file."""
        pyarrow = import_pyarrow()
        if hasattr(table, "num_record_batches"):
            yield from (table.get_batch(number) for number in range(table.num_record_batches))
        else:  # a stream can be read only once, so it is opened again
            with self.mapped.reader() as source:
                yield from pyarrow.ipc.open_stream(source)

    def batches(self, table: Any, count: int, columns: Sequence[str]) -> Iterator[Any]:
        for batch in self.stored(table):
            chosen = batch.select([name for name in columns if name in batch.schema.names])
            chosen.validate(full=True)  # pyarrow does not validate files itself
            for start in range(0, chosen.num_rows, count):
                yield chosen.slice(start, count)


def may_have_lists(kind: Any) -> bool:
    """Return whether a column may hold lists of numbers; their length is only known from a row."""
    types = import_pyarrow().types
    if types.is_struct(kind):
        return any(may_have_lists(kind.field(number).type) for number in range(kind.num_fields))
    return types.is_list(kind) or types.is_fixed_size_list(kind)


def column_of(batch: Any, name: str) -> Any:
    """Return a column of a batch; outer/inner is a nested column."""
    if name in batch.schema.names:
        return batch.column(name)
    compute: Any = importlib.import_module("pyarrow.compute")
    outer, _, inner = name.partition("/")
    column = batch.column(outer)
    for part in inner.split("/"):
        column = compute.struct_field(column, part)
    return column
