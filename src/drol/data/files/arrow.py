"""Arrow files, as Minari and `save_to_disk` of Hugging Face write them: the file format and the stream format."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from drol.data.files.tables import Mapped, TableFile, import_pyarrow
from drol.errors import InputError

MAGIC = b"ARROW1"


class ArrowFile(TableFile):
    """The columns of one Arrow file; its batches are as long as their writer made them."""

    @contextmanager
    def open(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        importlib.import_module("pyarrow.ipc")
        try:
            self.mapped = Mapped(self.path)
            with self.mapped.reader() as source:
                is_file = source.read(len(MAGIC)) == MAGIC
                source.seek(0)
                yield pyarrow.ipc.open_file(source) if is_file else pyarrow.ipc.open_stream(source)
        except InputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
            line = " ".join(str(error).split())[:200]
            raise InputError(f"{self.path} is not a whole Arrow file ({line}); fetch or write it again") from error

    def describe(self, table: Any) -> tuple[Any, int]:
        return table.schema, sum(batch.num_rows for batch in self.stored(table))

    def stored(self, table: Any) -> Iterator[Any]:
        """Yield the batches as they are stored."""
        pyarrow = import_pyarrow()
        if hasattr(table, "num_record_batches"):
            yield from (table.get_batch(number) for number in range(table.num_record_batches))
        else:  # a stream is read once
            with self.mapped.reader() as source:
                yield from pyarrow.ipc.open_stream(source)

    def batches(self, table: Any, count: int, columns: Sequence[str]) -> Iterator[Any]:
        for batch in self.stored(table):
            chosen = batch.select([name for name in columns if name in batch.schema.names])
            chosen.validate(full=True)  # Arrow itself trusts a file
            for start in range(0, chosen.num_rows, count):
                yield chosen.slice(start, count)
