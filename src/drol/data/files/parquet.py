"""Parquet files, as LeRobot, Hugging Face and pandas write them."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drol.data.files.tables import Mapped, TableFile, import_pyarrow
from drol.errors import InputError


def import_parquet() -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; raise `InputError` with the command that installs them."""
    return import_pyarrow(), importlib.import_module("pyarrow.parquet")


class ParquetFile(TableFile):
    """The columns of one Parquet file."""

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
    """A Parquet file; whatever is wrong with it becomes an `InputError`."""

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
        """Return what pyarrow says as one line."""
        line = " ".join(str(error).split())
        return InputError(f"{self.path} is not a whole Parquet file ({line[:200]}); fetch or write it again")
