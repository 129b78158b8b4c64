"""Read and write results as CSV or, with pyarrow, Parquet."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from drol.data.readers.arrow_tables import import_parquet
from drol.errors import InputError
from drol.results.result import COLUMNS, FIGURE, Result, Results
from drol.storage import write_whole

SUFFIXES = (".csv", ".parquet")


def write_results(results: Iterable[Result], path: Path | str) -> None:
    """Write results to a CSV or Parquet file.

    Args:
        results: The results.
        path: The file; its name ends in .csv or .parquet.
    """
    path = check_destination(Path(path))
    rows = [result.columns() for result in results]
    names = [*COLUMNS, *sorted({name for row in rows for name in row if name.startswith(FIGURE)})]
    if path.suffix == ".csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(path, text.getvalue())
        return
    pyarrow, parquet = import_parquet()
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    schema = pyarrow.schema([(name, kinds[COLUMNS.get(name, float)]) for name in names])
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), buffer)
    write_whole(path, buffer.getvalue())


def read_results(path: Path | str) -> Results:
    """Read a results file; `skipped` of the result lists invalid rows with reasons.

    Args:
        path: The file; its name ends in .csv or .parquet.
    """
    path = check_suffix(Path(path))
    if not path.is_file():
        raise InputError(f"{path} does not exist; write one with `drol results export`")
    results = Results()
    for line, row in read_csv(path) if path.suffix == ".csv" else read_parquet(path):
        try:
            results.append(Result.from_dict(row))
        except InputError as error:
            results.skipped.append(f"{path}: {line}: {error}")
    return results


def read_csv(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the rows of a CSV file, each with its line."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            check_columns(path, reader.fieldnames or [])
            return [(f"line {reader.line_num}", row) for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as CSV ({error})") from error


def read_parquet(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the rows of a Parquet file, each with its number."""
    pyarrow, parquet = import_parquet()
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({' '.join(str(error).split())})") from error
    check_columns(path, table.column_names)
    return [(f"row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]


def check_suffix(path: Path) -> Path:
    """Return the path of a results file; raise `InputError` for an unknown suffix."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a results file's name must end in {' or '.join(SUFFIXES)}")
    return path


def check_destination(path: Path) -> Path:
    """Return the path of a results file to write; raise `InputError` if it cannot be written."""
    check_suffix(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.absolute().parent} does not exist")
    return path


def check_columns(path: Path, names: Iterable[str]) -> None:
    """Raise `InputError` if a column of a result is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(
            f"{path} is not a results file: the column {missing[0]} is missing; write one with `drol results export`"
        )
