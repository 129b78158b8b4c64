"""Read and verify imported datasets on disk."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions
from drol.data.npy_header import Header, read_header
from drol.data.store.layout import SPLITS, array_path, data_root, dataset_folder, dataset_names, open_plain
from drol.data.store.manifest import read_manifest
from drol.data.trajectory_rows import ROW_ARRAYS, Arrays, Fingerprint, are_finished
from drol.errors import InputError, unknown_name
from drol.storage import recover_folder

HASH_BYTES = 1 << 22
KINDS = {  # the allowed types and numbers of axes of each array
    "observation": (("<f4", 2), ("|u1", 4)),
    "action": (("<f4", 2),),
    "reward": (("<f4", 1),),
    "continues": (("<f4", 1),),
    "last": (("|b1", 1),),
}


@dataclass(frozen=True)
class StoredDataset:
    """A dataset on disk: its folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, name: str, root: Path | None = None) -> Self:
        """Open a dataset by its name; read and check only its manifest and the headers of its arrays."""
        folder = dataset_folder(name, root)
        if not folder.is_dir():
            recover_folder(folder)
        if not folder.is_dir():
            known, where = dataset_names(root), root or data_root()
            if not known:
                advice = f"The folder {where} holds none, so make one with `drol data import FILE --out NAME`"
            else:
                advice = f"The folder {where} holds {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
            raise unknown_name("dataset", name, known, advice)
        stored = cls(folder, read_manifest(folder))
        stored.check_alike()
        return stored

    @property
    def control_rate(self) -> float | None:
        """The median number of steps per second; None if the files had no times in seconds."""
        sampling = self.manifest["sampling"]
        if sampling is None or sampling["unit"] == "steps" or sampling["interval"] <= 0:
            return None
        return float(f"{1 / sampling['interval']:.6g}")

    @property
    def box(self) -> ActionBox:
        """The bounds, in the units of the data, that the import scaled to [-1, 1]."""
        return ActionBox(tuple(self.manifest["action_low"]), tuple(self.manifest["action_high"]))

    @property
    def splits(self) -> tuple[str, ...]:
        """The existing splits: train, and validation if episodes are held out."""
        return tuple(split for split in SPLITS if self.has(split))

    def has(self, split: str) -> bool:
        """Return whether a split exists."""
        return self.manifest["splits"][split] is not None

    def check_alike(self) -> None:
        """Raise `InputError` unless all splits have observations and actions of the same shape."""
        shapes = {split: {name: each.shape[1:] for name, each in self.headers(split).items()} for split in self.splits}
        for split, found in shapes.items():
            for name in ROW_ARRAYS:
                if found[name] != shapes["train"][name]:
                    raise InputError(
                        f"{array_path(self.folder, split, name)} has rows of shape {list(found[name])} where train has "
                        f"{list(shapes['train'][name])}; import the dataset again"
                    )

    @property
    def dimensions(self) -> dict[str, Dimensions | None]:
        """The names, units and frames of "observation" and "action"; None where unknown."""
        shapes = {name: self.headers("train")[name].shape for name in ("observation", "action")}
        found = self.manifest["dimensions"]
        return {name: Dimensions.from_dict(found[name], shape[1]) for name, shape in shapes.items()}

    def headers(self, split: str) -> dict[str, Header]:
        """Return the shape and type of each array of a split, checked against the manifest and the file sizes."""
        headers = {}
        for name in ROW_ARRAYS:
            path = array_path(self.folder, split, name)
            header = headers[name] = read_array_header(path)
            is_kind = (header.dtype.str, len(header.shape)) in KINDS[name]
            if not is_kind or 0 in header.shape or header.column_major:
                raise InputError(f"{path} holds {header.dtype} of shape {header.shape}; import the dataset again")
            if header.shape[0] != self.manifest["splits"][split]["rows"]:
                raise InputError(f"{path} has {header.shape[0]} rows, not those of its manifest; import it again")
        if headers["action"].shape[1] != len(self.manifest["action_low"]):
            raise InputError(f"{self.folder / split} has actions of another size than its manifest; import it again")
        return headers

    def nbytes(self, split: str) -> int:
        """Return the size of the arrays of a split in bytes."""
        return sum(header.nbytes for header in self.headers(split).values())

    def arrays(self, split: str) -> Arrays:
        """Map the arrays of a split into memory; check shapes and ends, but not other content (see `verify`)."""
        arrays = {}
        for name, header in self.headers(split).items():
            path = array_path(self.folder, split, name)
            try:
                arrays[name] = np.memmap(path, header.dtype, "r", header.data_offset, header.shape)
            except (OSError, ValueError) as error:
                raise InputError(f"{path} cannot be used ({error}); import the dataset again") from error
        last, expected = arrays["last"].view(np.uint8), self.manifest["splits"][split]["episodes"]
        if last.max() > 1 or np.count_nonzero(last) != expected or not are_finished(arrays):
            path = array_path(self.folder, split, "last")
            raise InputError(f"{path} does not mark the ends of {expected} episodes; import the dataset again")
        return arrays

    def verify(self, split: str, advance: Callable[[int], None] | None = None) -> None:
        """Compare the content of every file of a split with its checksum.

        Args:
            split: One of `SPLITS`.
            advance: Called with the number of bytes compared since the last call.
        """
        expected = self.manifest["splits"][split]
        self.headers(split)
        found = read_checksums(self.folder, split, advance)
        for name in ROW_ARRAYS:
            if found["sha256"][name] != expected["sha256"][name]:
                path = array_path(self.folder, split, name)
                raise InputError(f"{path} does not match its checksum; import the dataset again")
        if found["fingerprint"] != expected["fingerprint"]:
            raise InputError(f"{self.folder / split} does not match its fingerprint; import the dataset again")


def read_array_header(path: Path) -> Header:
    """Return the header of an array; raise `InputError` unless its file is regular and valid."""
    try:
        file = open_plain(path)
    except OSError as error:
        raise InputError(f"{path} cannot be used ({error.strerror}); import the dataset again") from error
    with file:
        try:
            return read_header(file, os.fstat(file.fileno()).st_size)
        except InputError as error:
            raise InputError(f"{path} {error}; import the dataset again") from error


def read_checksums(folder: Path, split: str, advance: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Compute the checksum of each array of a split and the fingerprint of the split, from the files."""
    fingerprint, checksums = Fingerprint(), {}
    for name in ROW_ARRAYS:
        path, checksum = array_path(folder, split, name), hashlib.sha256()
        header = read_array_header(path)
        fingerprint.begin_array(name, header.dtype, header.shape)
        with path.open("rb") as file:
            file.seek(header.data_offset)
            while data := file.read(HASH_BYTES):
                checksum.update(data)
                fingerprint.add_bytes(data)
                if advance:
                    advance(len(data))
        checksums[name] = checksum.hexdigest()
    return {"sha256": checksums, "fingerprint": fingerprint.hexdigest()}
