"""Parquet files as LeRobot lays them out: a row is a step, numbers and fixed lists of numbers in columns."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.files.fields import StepFile, choose_fields, join_fields, steps_in_block
from drol.data.rows import Arrays
from drol.errors import InputError


def import_parquet() -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; raise `InputError` with the command that installs them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "Parquet files need the package pyarrow; install it with: pip install 'drol[lerobot]'"
        ) from error
    return pyarrow, pyarrow.parquet


class ParquetFile(StepFile):
    """The columns of one file; images and videos are not read."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]]):
        self.path = path
        with OpenParquet(path) as file:
            self.steps = file.metadata.num_rows
            self.chosen = choose_fields(file.schema_arrow.names, mapping, path)
            self.columns = sorted({name for names in self.chosen.values() for name in names})
            # The first step tells how long lists are: to ask pyarrow for a column of a damaged file ends the process.
            steps = next(file.iter_batches(1, columns=self.columns, use_threads=False), None)
            values = sum(self.to_array(name, steps.column(name)).size for name in self.columns) if steps else 0
        self.nbytes = 4 * values * self.steps

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        done = 0
        with OpenParquet(self.path) as file:
            count = steps_in_block(self.nbytes // max(1, self.steps))
            for batch in file.iter_batches(count, columns=self.columns, use_threads=False):
                parts = {name: self.to_array(name, batch.column(name)) for name in self.columns}
                done += batch.num_rows
                yield join_fields(parts, self.chosen), done / max(1, self.steps)
        if done != self.steps:
            raise InputError(
                f"{self.path} holds {done:,} steps where it declares {self.steps:,}; fetch or write it again"
            )

    def to_array(self, name: str, column: Any) -> np.ndarray:
        """Return a column as [steps] or [steps, ...]; a missing number is NaN."""
        pyarrow, _ = import_parquet()
        shape, values = [len(column)], column
        while pyarrow.types.is_fixed_size_list(values.type) or pyarrow.types.is_list(values.type):
            shape.append(self.list_length(name, values))
            values = values.flatten()
        kind = values.type
        if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind)):
            raise InputError(
                f"{self.path}: {name} is of the type {column.type}; it must hold numbers (no images or videos)"
            )
        return values.to_numpy(zero_copy_only=False).reshape(shape)

    def list_length(self, name: str, lists: Any) -> int:
        """Return the length that all lists of a column have."""
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


class OpenParquet:
    """A Parquet file; whatever is wrong with it becomes an `InputError`.

    It is mapped into memory, so that a page that claims to be larger than the file takes no memory.
    """

    def __init__(self, path: Path):
        self.path = path
        self.pyarrow, self.parquet = import_parquet()

    def __enter__(self) -> Any:
        try:
            self.file = self.parquet.ParquetFile(
                self.path, memory_map=True, pre_buffer=False, page_checksum_verification=True
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
        """Return what pyarrow says as one line."""
        line = " ".join(str(error).split())
        return InputError(f"{self.path} is not a whole Parquet file ({line[:200]}); fetch or write it again")
