"""Files of steps in the formats people have them in; each format is a `Source` that gives its steps in blocks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from drol.data.files.fields import Source
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
    """The files to read: those named, and in a folder of LeRobot or Minari those that hold its steps."""
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


def open_source(path: Path, mapping: Mapping[str, Sequence[str]]) -> Source:
    """A file by its suffix; the modules that read one format are imported when it is met."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind == "npz":
        from drol.data.files.npz_steps import NpzSource

        return NpzSource(path, mapping)
    if kind == "hdf5":
        from drol.data.files.hdf5_steps import open_hdf5_source

        return open_hdf5_source(path, mapping)
    if kind == "parquet":
        from drol.data.files.parquet import ParquetSource

        return ParquetSource(path, mapping)
    if kind == "csv":
        from drol.data.files.csv import CSVSource

        return CSVSource(path, mapping)
    if path.suffix.lower() in PICKLES:
        raise InputError(
            f"{path} is not imported: such files can run code when opened, or hold one array; load it "
            "yourself and write numpy.savez('data.npz', observations=..., actions=..., rewards=..., ...)"
        )
    raise InputError(f"{path} has an unknown suffix; it must be one of {', '.join(SUFFIXES)}")
