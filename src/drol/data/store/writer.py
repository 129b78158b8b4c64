"""Imported datasets on disk: a folder of plain .npy files, whole or not there at all.

`datasets/NAME/dataset.json` says what the data is and how it was understood; `train/` and `validation/` hold one .npy
file for each array, row for row as a `Dataset` has them, so that they can be mapped into memory instead of read.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from drol.data.actions import ACTION_LIMIT, ActionBox
from drol.data.files.episodes import ROW_ARRAYS
from drol.data.store.manifest import read_manifest, write_manifest
from drol.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SPLITS = ("train", "validation")
HASH_BYTES = 1 << 22


def data_root() -> Path:
    """The folder of all imported datasets: `DROL_DATA`, or `datasets` here."""
    return Path(os.environ.get("DROL_DATA") or "datasets")


def dataset_folder(name: str, root: Path | None = None) -> Path:
    """The folder of a dataset; a name never leads out of the root."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"dataset name {name!r} is not allowed; use up to 100 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    root = root or data_root()
    folder = root / name
    if folder.resolve().parent != root.resolve() or folder.is_symlink():
        raise InputError(f"dataset {name!r} is a link that leads out of {root}; put the folder itself there")
    return folder


def dataset_names(root: Path | None = None) -> list[str]:
    """Every dataset of the root, by name."""
    root = root or data_root()
    if not root.is_dir():
        return []
    return sorted(path.parent.name for path in root.glob("*/dataset.json") if NAME.fullmatch(path.parent.name))


class ArrayWriter:
    """A .npy file that grows by rows; its header is written again when the number of rows is known."""

    def __init__(self, path: Path, like: np.ndarray):
        self.dtype, self.row_shape, self.rows = like.dtype, like.shape[1:], 0
        self.file = path.open("wb")
        self.header_size = self.write_header()

    def write_header(self) -> int:
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.row_shape)}
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, header)
        return self.file.tell()

    def append(self, rows: np.ndarray) -> None:
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.rows += len(rows)

    def close(self) -> None:
        size = self.write_header()
        assert size == self.header_size, "NumPy leaves room in a header for the number of rows"
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class SplitWriter:
    """The five arrays of one split, finished as a `Dataset` holds them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.writers: dict[str, ArrayWriter] = {}
        self.held: dict[str, np.ndarray] | None = None  # a last row that waits for the action of the next trajectory
        self.episodes = 0

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        if not len(rows["last"]):
            return
        if not self.writers:
            self.folder.mkdir()
            self.writers = {name: ArrayWriter(self.folder / f"{name}.npy", rows[name]) for name in ROW_ARRAYS}
        rows = {
            name: rows[name] if self.held is None else np.concatenate((self.held[name], rows[name])) for name in rows
        }
        last = rows["last"]
        self.episodes += int(last.sum()) - (self.held is not None)
        rows["action"] = np.clip(rows["action"], -ACTION_LIMIT, ACTION_LIMIT)
        ends = np.flatnonzero(last[:-1])
        rows["action"][ends] = rows["action"][ends + 1]
        for name in ("reward", "continues"):
            rows[name] = np.where(last, 0, rows[name]).astype(np.float32)
        self.held = {name: array[-1:].copy() for name, array in rows.items()} if last[-1] else None
        count = len(last) - (self.held is not None)
        if count:
            self.newest_action = rows["action"][count - 1]
        for name, writer in self.writers.items():
            writer.append(rows[name][:count])

    def close(self) -> dict[str, Any] | None:
        """Finish the files; what the manifest says of them, or None if there are none."""
        if not self.writers:
            return None
        assert self.held is not None, "an episode is still open"
        self.held["action"][0] = self.newest_action
        for name, writer in self.writers.items():
            writer.append(self.held[name])
            writer.close()
        sync_folder(self.folder)
        rows = self.writers["last"].rows
        return {
            "rows": rows, "episodes": self.episodes, "transitions": rows - self.episodes, **digests(self.folder)
        }  # fmt: skip

    def abandon(self) -> None:
        for writer in self.writers.values():
            writer.file.close()


class DatasetWriter:
    """Writes a dataset under another name and renames it when it is whole; whatever goes wrong, nothing is left."""

    def __init__(
        self,
        name: str,
        root: Path | None = None,
        validation: float = 0.1,
        seed: int = 0,
        replace: bool = False,
    ):
        if not 0 <= validation <= 0.5:
            raise InputError(f"validation is {validation:g}; it must be a share of the episodes from 0 to 0.5")
        if seed < 0:
            raise InputError(f"seed is {seed}; it must be at least 0")
        self.name, self.validation, self.seed, self.replace = name, validation, seed, replace
        self.folder = dataset_folder(name, root)
        self.partial = self.folder.with_name(f".{name}.partial")
        self.every = round(1 / validation) if validation else 0  # of so many episodes one is held out
        self.episode = 0
        self.check_free()

    def check_free(self) -> None:
        if self.folder.exists() and not self.replace:
            raise InputError(f"the dataset {self.folder} exists already; choose another name or pass --replace")
        if self.folder.exists() and not (self.folder / "dataset.json").is_file():
            raise InputError(f"{self.folder} is not a dataset, so it is not replaced; choose another name")

    def __enter__(self) -> Self:
        self.made_root = not self.folder.parent.exists()
        self.partial.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(self.partial, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.lock)
            raise InputError(f"another process is writing the dataset {self.name}; wait for it") from error
        clear(self.partial)  # of a process that was killed
        self.splits = {split: SplitWriter(self.partial / split) for split in SPLITS}
        return self

    def __exit__(self, *_: object) -> None:
        for split in self.splits.values():
            split.abandon()
        shutil.rmtree(self.partial, ignore_errors=True)
        os.close(self.lock)
        if self.made_root:
            with contextlib.suppress(OSError):  # there is something in it
                self.folder.parent.rmdir()

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows of trajectories laid end to end; an episode may come in several pieces."""
        if not rows:
            return
        last = rows["last"]
        episode = self.episode + np.cumsum(last) - last
        self.episode += int(last.sum())
        held_out = np.isin(episode, [number for number in np.unique(episode).tolist() if self.is_held_out(number)])
        for split, chosen in (("train", ~held_out), ("validation", held_out)):
            self.splits[split].append({name: rows[name][chosen] for name in ROW_ARRAYS})

    def is_held_out(self, episode: int) -> bool:
        """One of every so many episodes, by the seed; never the first, so that something is left to train on."""
        if not self.every:
            return False
        group, number = divmod(episode, self.every)
        return number == 1 + np.random.default_rng((self.seed, group)).integers(self.every - 1)

    def publish(self, about: Mapping[str, Any]) -> Path:
        """Make the dataset appear under its name, with what there is to say about it."""
        splits = {name: split.close() for name, split in self.splits.items()}
        if splits["train"] is None:
            raise InputError("there is not one transition; nothing was written")
        write_manifest(
            self.partial,
            {"name": self.name, **about, "held_out": [self.validation, self.seed], "splits": splits},
        )
        sync_folder(self.partial)
        old = self.folder.with_name(f".{self.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        self.check_free()
        if self.folder.exists():
            self.folder.rename(old)
        try:
            self.partial.rename(self.folder)
        except OSError:
            if old.exists():
                old.rename(self.folder)
            raise
        sync_folder(self.folder.parent)
        shutil.rmtree(old, ignore_errors=True)
        return self.folder


@dataclass(frozen=True)
class StoredDataset:
    """A dataset on disk."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, name: str, root: Path | None = None) -> Self:
        folder = dataset_folder(name, root)
        if not folder.is_dir():
            known = dataset_names(root)
            raise InputError(
                f"there is no dataset {name!r} in {root or data_root()}; "
                + (f"it has {', '.join(known[:8])}" if known else "make one with `drol data import FILE --out NAME`")
            )
        return cls(folder, read_manifest(folder))

    @property
    def box(self) -> ActionBox:
        """What actions in [-1, 1] were before."""
        return ActionBox(tuple(self.manifest["action_low"]), tuple(self.manifest["action_high"]))

    def has(self, split: str) -> bool:
        return self.manifest["splits"][split] is not None

    def nbytes(self, split: str) -> int:
        return sum(array.nbytes for array in self.arrays(split).values())

    def arrays(self, split: str) -> dict[str, np.ndarray]:
        """The arrays of a split, mapped; their sizes are checked, their content is not (see `verify`)."""
        arrays = {}
        for name in ROW_ARRAYS:
            path = self.folder / split / f"{name}.npy"
            try:
                if path.is_symlink():
                    raise ValueError("it is a link")
                arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise InputError(f"{path} cannot be used ({error}); import the dataset again") from error
            if len(arrays[name]) != self.manifest["splits"][split]["rows"]:
                raise InputError(f"{path} has {len(arrays[name])} rows, not those of its manifest; import it again")
        return arrays

    def verify(self, split: str) -> None:
        """Compare the content of every file with its checksum."""
        expected = self.manifest["splits"][split]
        self.arrays(split)
        found = digests(self.folder / split)
        for name in ROW_ARRAYS:
            if found["sha256"][name] != expected["sha256"][name]:
                path = self.folder / split / f"{name}.npy"
                raise InputError(f"{path} does not match its checksum; import the dataset again")


def digests(folder: Path) -> dict[str, Any]:
    """A checksum of each array and, over all of them, the fingerprint that `Dataset.fingerprint` gives."""
    fingerprint, checksums = hashlib.sha256(), {}
    for name in ROW_ARRAYS:
        checksum = hashlib.sha256()
        with (folder / f"{name}.npy").open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            fingerprint.update(f"{name} {dtype.str} {shape}".encode())
            while data := file.read(HASH_BYTES):
                checksum.update(data)
                fingerprint.update(data)
        checksums[name] = checksum.hexdigest()
    return {"sha256": checksums, "fingerprint": fingerprint.hexdigest()}


def clear(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
