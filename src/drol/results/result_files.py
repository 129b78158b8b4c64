"""Results in files: CSV, and Parquet where pyarrow is installed."""

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
    """Read a file of results; a row that makes no sense is left out, and `skipped` says why.

    Args:
        path: The file; its name ends in .csv or .parquet.
    """
    path = check_suffix(Path(path))
    if not path.is_file():
        raise InputError(f"there is no file {path}; `drol results export` makes one")
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
    """Return the path of a results file; refuse a name that does not say which kind it is."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"the results file is {path}; its name must end in {' or '.join(SUFFIXES)}")
    return path


def check_destination(path: Path) -> Path:
    """Return the path of a results file to write; refuse one that cannot be."""
    check_suffix(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    return path


def check_columns(path: Path, names: Iterable[str]) -> None:
    """Refuse a file that has not all columns of a result."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InputError(f"{path} is no results file: it has no column {missing[0]}; `drol results export` makes one")
