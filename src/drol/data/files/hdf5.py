"""Arrays in HDF5 files. What somebody else wrote is read without opening another file and without loading code."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # built into h5py; any other would be a plugin
LARGEST_RATIO = 1100  # of an array to what is stored of it; gzip reaches 1032


def import_h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise InputError("HDF5 files need the package h5py; install it with: pip install 'drol[d4rl]'") from error
    return h5py


def read_hdf5(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The named arrays of an HDF5 file, numbers with a fraction as float32; one that is optional may be missing."""
    with open_hdf5(path) as file:
        missing = [name for name in required if file.find(name) is None]
        if missing:
            raise InputError(f"dataset file {path} has {file.names()} but lacks {missing}")
        return {name: file.read(name) for name in (*required, *optional) if file.find(name) is not None}


@contextmanager
def open_hdf5(path: Path) -> Iterator["HDF5File"]:
    """Open a file for reading; whatever is wrong with it is an InputError."""
    h5py = import_h5py()
    if not path.is_file():
        raise InputError(f"dataset file {path} does not exist; give the path of an HDF5 file")
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield HDF5File(path, file)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, NotImplementedError, MemoryError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"dataset file {path} is not a whole HDF5 file ({line}); fetch or collect it again") from error


class HDF5File:
    """An open file of which only arrays that are stored in it can be reached."""

    def __init__(self, path: Path, file: Any):
        self.path, self.file = path, file

    def names(self, group: str = "") -> list[str]:
        """What a group holds; without a name, the top of the file."""
        return sorted(map(str, self.find(group) if group else self.file))

    def find(self, name: str) -> Any:
        """A group or an array by its path in the file, None where there is none; links lead nowhere."""
        h5py = import_h5py()
        node = self.file
        for part in name.split("/"):
            link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                kind = "a link to another file" if isinstance(link, h5py.ExternalLink) else "a link"
                raise InputError(
                    f"dataset file {self.path} has {kind} in place of {name!r}; it must hold the array itself"
                )
            node = node[part]
        return node

    def read(self, name: str) -> np.ndarray:
        """An array, converted while it is read, so that it is never held twice."""
        array = self.find(name)
        fault = find_fault(array)
        if fault:
            raise InputError(f"dataset file {self.path} is refused: {name!r} {fault}")
        kind = np.float32 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
        values = np.empty(array.shape, kind)
        if values.size:
            array.read_direct(values)
        return values


def find_fault(array: Any) -> str | None:
    """Why something in a file is not to be read, if so."""
    h5py = import_h5py()
    if not isinstance(array, h5py.Dataset):
        return "is not an array"
    properties = array.id.get_create_plist()
    if properties.get_layout() == h5py.h5d.VIRTUAL or properties.get_external_count():
        return "keeps its values in other files; they must be in this one"
    filters = [properties.get_filter(number)[0] for number in range(properties.get_nfilters())]
    foreign = [number for number in filters if number not in FILTERS]
    if foreign:
        return f"needs the filter plugin {foreign[0]}; it must use one of {', '.join(FILTERS.values())} or none"
    if array.dtype.kind not in "biuf":
        return f"has the type {array.dtype}; it must be numbers or booleans"
    stored = array.id.get_storage_size()
    size = array.size or 0
    if size * array.dtype.itemsize > stored * (LARGEST_RATIO if filters else 1):
        return f"declares {size} values but stores {stored} bytes; the file is damaged"
    return None


def write_hdf5(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, compressed; the file appears under its name when it is whole."""
    h5py = import_h5py()
    if path.exists():
        raise InputError(f"{path} exists already; choose another name, nothing was written")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with h5py.File(partial, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
    partial.rename(path)
