"""Read untrusted HDF5 files without opening other files and without loading code, and write HDF5 files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.trajectory_rows import Arrays
from drol.errors import InputError
from drol.storage import sync_folder

FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # built into h5py; any other filter is a plugin
LARGEST_RATIO = 1100  # ratio of the size of an array to its stored bytes; gzip reaches 1032
DEEPEST = 8  # levels of nested groups to list


def import_h5py() -> Any:
    """Return the module h5py; if it is missing, raise `InputError` with the command that installs it."""
    try:
        import h5py
    except ImportError as error:
        raise InputError("HDF5 files need the package h5py; install it with: pip install 'drol[hdf5]'") from error
    return h5py


def read_hdf5(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Return the named arrays of an HDF5 file; floating-point numbers are converted to float32.

    Args:
        path: The file.
        required: Arrays that must exist, by their paths in the file.
        optional: Arrays that may be missing.
    """
    with open_hdf5(path) as file:
        missing = [name for name in required if file.find(name) is None]
        if missing:
            raise InputError(f"dataset file {path} has {file.names()} but lacks {missing}")
        return {name: file.read(name) for name in (*required, *optional) if file.find(name) is not None}


@contextmanager
def open_hdf5(path: Path) -> Iterator["HDF5File"]:
    """Open a file for reading; convert errors about its content to `InputError`."""
    h5py = import_h5py()
    if not path.is_file():
        raise InputError(f"dataset file {path} does not exist; give the path of an HDF5 file")
    try:
        # h5py's lock fails on a file that drol has locked during a download. A reader does not need the lock.
        with h5py.File(path, "r", locking=False) as file:
            yield HDF5File(path, file)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, NotImplementedError, MemoryError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"dataset file {path} is not a valid HDF5 file ({line}); fetch or collect it again") from error


class HDF5File:
    """An open file that gives access only to arrays stored in the file itself."""

    def __init__(self, path: Path, file: Any):
        self.path, self.file = path, file

    def names(self, group: str = "") -> list[str]:
        """Return the names in a group; without a group, at the top of the file."""
        return sorted(map(str, self.find(group) if group else self.file))

    def find(self, name: str) -> Any:
        """Return a group or an array by its path in the file, or None; raise `InputError` for links."""
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

    def array(self, name: str) -> Any:
        """Return an array without reading it; raise `InputError` if it is not safe to read."""
        array = self.find(name)
        fault = "is not there" if array is None else find_fault(array)
        if fault:
            raise InputError(f"dataset file {self.path} is refused: {name!r} {fault}")
        return array

    def read(self, name: str) -> np.ndarray:
        """Return the values of an array, converted while they are read, so that they are in memory only once."""
        array = self.array(name)
        kind = np.float32 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
        values = np.empty(array.shape, kind)
        if values.size:
            array.read_direct(values)
        return values

    def step_array(self, name: str, may_be_text: bool = False) -> Any:
        """Return an array with one row for each step, without reading it."""
        if may_be_text and is_text(self.find(name)):
            return Texts(self.find(name))
        array = self.array(name)
        if not array.shape:
            raise InputError(f"dataset file {self.path}: {name!r} is a single value; it must have a row for each step")
        return array

    def walk(self, group: str, depth: int = 0) -> Iterator[str]:
        """Yield the arrays of a group and of its subgroups; links are listed too, but reading one raises an error."""
        for name in self.names(group):
            path = f"{group}/{name}" if group else name
            try:
                node = self.find(path)
            except InputError:
                node = None
            if hasattr(node, "keys") and depth < DEEPEST:
                yield from self.walk(path, depth + 1)
            else:
                yield path


def is_text(array: Any) -> bool:
    """Return whether an object in a file is a list of texts."""
    h5py = import_h5py()
    return isinstance(array, h5py.Dataset) and array.ndim == 1 and h5py.check_string_dtype(array.dtype) is not None


class Texts:
    """A list of texts in a file, read in parts."""

    def __init__(self, array: Any):
        self.array, self.shape, self.nbytes = array, array.shape, 16 * len(array)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, part: slice) -> np.ndarray:
        texts = [each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in self.array[part]]
        return np.asarray(texts, np.str_)


def find_fault(array: Any) -> str | None:
    """Return why an object in a file is not safe to read; None if it is safe."""
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
    """Write compressed arrays atomically: the file gets its name when it is complete."""
    h5py = import_h5py()
    if path.exists():
        raise InputError(f"{path} exists already; choose another name, nothing was written")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with h5py.File(partial, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array, compression="gzip")
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)
