"""Find and open files of steps; each is opened as a `StepFile` that yields its steps in blocks."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from drol.data.readers.fields import StepFile
from drol.errors import InputError

SUFFIXES = {
    ".npz": "npz",
    ".hdf5": "hdf5",
    ".h5": "hdf5",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".mcap": "bag",
    ".db3": "bag",
}
BAG = "metadata.yaml"  # a folder with this file is a ROS 2 bag
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".npy")
MOST_FILES = 100_000


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files to read, each once.

    Replace a folder by the files of steps in it, and a glob pattern by the paths that match it.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += find_in_folder(path)
        elif path.is_file():
            files.append(path)
        elif any(letter in str(path) for letter in "*?["):
            found = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))), key=in_order)
            if not found:
                raise InputError(f"no file is called {path}; name the files to import")
            files += find_files(found)
        else:
            raise InputError(f"the file {path} does not exist; name the files to import")
    if not files:
        raise InputError("no file was named; name the files to import")
    return list(dict.fromkeys(files))


def find_in_folder(folder: Path) -> list[Path]:
    """Return the files to read in a folder: bags, else files of LeRobot or Minari, else all readable files.

    Raise `InputError` if the readable files have different formats.
    """
    bags = sorted((path.parent for path in folder.rglob(BAG)), key=in_order)
    if bags:
        return bags
    for pattern in ("data/**/*.parquet", "**/main_data.hdf5", "data/**/*.arrow"):
        inside = sorted(folder.glob(pattern), key=in_order)
        if inside:
            return inside
    inside = sorted((path for path in folder.rglob("*") if kind_of(path) and path.is_file()), key=in_order)
    kinds = {kind_of(path) for path in inside}
    if not inside:
        raise InputError(
            f"the folder {folder} holds no file that can be read ({', '.join(SUFFIXES)}); name the files to import"
        )
    if len(kinds) > 1:
        raise InputError(f"the folder {folder} holds files of {' and '.join(sorted(map(str, kinds)))}; name one kind")
    if len(inside) > MOST_FILES:
        raise InputError(f"the folder {folder} holds {len(inside):,} files; at most {MOST_FILES:,} are read at once")
    return inside


def in_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in names as numbers: episode_2 before episode_10."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def kind_of(path: Path) -> str | None:
    """Return the format of a file by its suffix; None if the suffix is unknown."""
    if path.is_dir():
        return "bag" if (path / BAG).is_file() else None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return SUFFIXES.get("".join(suffixes[-2:])) or SUFFIXES.get(suffixes[-1] if suffixes else "")


def open_steps(path: Path, mapping: Mapping[str, Sequence[str]], everything: bool = False) -> StepFile:
    """Open a file of the format that its suffix indicates.

    Args:
        path: The file.
        mapping: The names in the file of some fields; other fields are found by their usual names.
        everything: Whether to read every column, each as a field with the column's name, for a transform.
    """
    kind = kind_of(path)
    if kind == "bag":
        from drol.data.readers.bags import BagFile

        return BagFile(path, mapping, everything)
    fields = None if everything else mapping
    if kind == "npz":
        from drol.data.readers.npz import NpzFile

        return NpzFile(path, fields)
    if kind == "hdf5":
        from drol.data.readers.hdf5_steps import open_hdf5_steps
        from drol.data.readers.metadata import describe_minari

        return open_hdf5_steps(path, fields, describe_minari(path))
    if kind in ("parquet", "arrow"):
        from drol.data.readers.arrow_tables import ArrowFile, ParquetFile
        from drol.data.readers.metadata import describe_lerobot, describe_minari

        beside = describe_lerobot(path) or describe_minari(path)
        return (ParquetFile if kind == "parquet" else ArrowFile)(path, fields, beside)
    if kind == "csv":
        from drol.data.readers.csv_tables import CSVFile

        return CSVFile(path, fields)
    raise InputError(f"{path} {why_not(path)}")


ADVICE = {
    PICKLES: "is not imported: such files can run code when opened, or hold one array; load it yourself and write "
    "numpy.savez('data.npz', observations=..., actions=..., rewards=..., ...)",
    (".xlsx", ".xls", ".ods"): "is a spreadsheet; save it as CSV",
    (".mat",): "is of MATLAB; write it as HDF5 (save -v7.3 keeps objects, so use h5create and h5write) or as CSV",
    (".bag",): "is a bag of ROS 1; make it one of ROS 2 with: rosbags-convert --src FILE.bag --dst FOLDER",
    (".feather",): "is a Feather file; rename it to .arrow, which it is",
    (".tfrecord",): "is a TFRecord file; write its episodes with drol.EpisodeWriter, or its steps as Parquet",
    (".json", ".jsonl"): "is JSON; write its rows as CSV or Parquet, such as pandas.read_json(...).to_parquet(...)",
    (".zarr",): "is a Zarr store; write its arrays with numpy.savez('data.npz', observations=..., actions=..., ...)",
    (".mp4", ".avi", ".mkv"): "is a video, which is not read; images are read from arrays of bytes",
}


def why_not(path: Path) -> str:
    """Return the reason why a file cannot be read, and advice."""
    for suffixes, words in ADVICE.items():
        if path.suffix.lower() in suffixes or (".tfrecord" in suffixes and ".tfrecord" in path.name):
            return words
    return f"has an unknown suffix; it must be one of {', '.join(SUFFIXES)}"
