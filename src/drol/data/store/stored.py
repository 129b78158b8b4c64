"""Imported datasets on disk, for reading."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from drol.data.actions import ActionBox
from drol.data.rows import ROW_ARRAYS, Arrays, Fingerprint
from drol.data.store.layout import SPLITS, array_path, data_root, dataset_folder, dataset_names
from drol.data.store.manifest import read_manifest
from drol.errors import InputError, unknown_name
from drol.storage import recover_folder

HASH_BYTES = 1 << 22


@dataclass(frozen=True)
class StoredDataset:
    """A dataset on disk: its folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, name: str, root: Path | None = None) -> Self:
        """Open a dataset by its name; its manifest is read, nothing of its arrays."""
        folder = dataset_folder(name, root)
        if not folder.is_dir():
            recover_folder(folder)
        if not folder.is_dir():
            known, where = dataset_names(root), root or data_root()
            if not known:
                advice = f"the folder {where} holds none, so make one with `drol data import FILE --out NAME`"
            else:
                advice = f"The folder {where} holds {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
            raise unknown_name("dataset", name, known, advice)
        return cls(folder, read_manifest(folder))

    @property
    def box(self) -> ActionBox:
        """The box, in the units of the data, that became [-1, 1]."""
        return ActionBox(tuple(self.manifest["action_low"]), tuple(self.manifest["action_high"]))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that there are: train, and validation if episodes are held out."""
        return tuple(split for split in SPLITS if self.has(split))

    def has(self, split: str) -> bool:
        """Return whether there is a split."""
        return self.manifest["splits"][split] is not None

    def nbytes(self, split: str) -> int:
        """Return the size of the arrays of a split in bytes."""
        return sum(array.nbytes for array in self.arrays(split).values())

    def arrays(self, split: str) -> Arrays:
        """Return the arrays of a split, mapped; their sizes are checked, their content is not (see `verify`)."""
        arrays = {}
        for name in ROW_ARRAYS:
            path = array_path(self.folder, split, name)
            try:
                if path.is_symlink():
                    raise ValueError("it is a link")
                arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise InputError(f"{path} cannot be used ({error}); import the dataset again") from error
            if len(arrays[name]) != self.manifest["splits"][split]["rows"]:
                raise InputError(f"{path} has {len(arrays[name])} rows, not those of its manifest; import it again")
        return arrays

    def verify(self, split: str, advance: Callable[[int], None] | None = None) -> None:
        """Compare the content of every file of a split with its checksum.

        Args:
            split: One of `SPLITS`.
            advance: Called with the number of bytes that were compared since the last call.
        """
        expected = self.manifest["splits"][split]
        self.arrays(split)
        found = read_checksums(self.folder, split, advance)
        for name in ROW_ARRAYS:
            if found["sha256"][name] != expected["sha256"][name]:
                path = array_path(self.folder, split, name)
                raise InputError(f"{path} does not match its checksum; import the dataset again")


def read_checksums(folder: Path, split: str, advance: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Return the checksum of each array of a split and the fingerprint of all of them, read from their files."""
    fingerprint, checksums = Fingerprint(), {}
    for name in ROW_ARRAYS:
        checksum = hashlib.sha256()
        with array_path(folder, split, name).open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            fingerprint.begin_array(name, dtype, shape)
            while data := file.read(HASH_BYTES):
                checksum.update(data)
                fingerprint.add_bytes(data)
                if advance:
                    advance(len(data))
        checksums[name] = checksum.hexdigest()
    return {"sha256": checksums, "fingerprint": fingerprint.hexdigest()}
