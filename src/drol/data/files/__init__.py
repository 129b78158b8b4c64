"""Files of steps in the formats people have them in; each is a `StepFile` that gives its steps in blocks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from drol.data.files.fields import StepFile
from drol.errors import InputError

SUFFIXES = {
    ".npz": "npz",
    ".hdf5": "hdf5",
    ".h5": "hdf5",
    ".parquet": "parquet",
    ".csv": "csv",
}
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".npy")


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files to read; a folder of LeRobot or Minari stands for the files in it that hold its steps."""
    files = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("data/**/*.parquet")) or sorted(path.glob("**/main_data.hdf5"))
            if not inside:
                raise InputError(
                    f"the folder {path} holds no data/**/*.parquet (LeRobot) and no main_data.hdf5 (Minari); "
                    "name the files to import"
                )
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise InputError(f"the file {path} does not exist; name the files to import")
    if not files:
        raise InputError("no file was named; name the files to import")
    return files


def open_steps(path: Path, mapping: Mapping[str, Sequence[str]]) -> StepFile:
    """Open a file by its suffix.

    Args:
        path: The file.
        mapping: The names in the file of some fields; the others are looked for by their usual names.
    """
    kind = SUFFIXES.get(path.suffix.lower())
    if kind == "npz":
        from drol.data.files.npz import NpzFile

        return NpzFile(path, mapping)
    if kind == "hdf5":
        from drol.data.files.hdf5 import open_hdf5_steps

        return open_hdf5_steps(path, mapping)
    if kind == "parquet":
        from drol.data.files.parquet import ParquetFile

        return ParquetFile(path, mapping)
    if kind == "csv":
        from drol.data.files.csv import CSVFile

        return CSVFile(path, mapping)
    if path.suffix.lower() in PICKLES:
        raise InputError(
            f"{path} is not imported: such files can run code when opened, or hold one array; load it "
            "yourself and write numpy.savez('data.npz', observations=..., actions=..., rewards=..., ...)"
        )
    raise InputError(f"{path} has an unknown suffix; it must be one of {', '.join(SUFFIXES)}")
