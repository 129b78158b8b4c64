"""Write a dataset atomically to a folder of .npy files."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from drol.data.store.layout import MANIFEST, SPLITS, array_path, dataset_folder
from drol.data.store.manifest import write_manifest
from drol.data.store.stored import read_checksums
from drol.data.trajectory_rows import ROW_ARRAYS, RowFinisher
from drol.errors import InputError
from drol.storage import exclusive, recover_folder, replace_folder, sync_folder, writing


class ArrayWriter:
    """A .npy file to which rows are appended; its header is rewritten when the number of rows is known."""

    def __init__(self, path: Path, like: np.ndarray):
        self.dtype, self.row_shape, self.rows = like.dtype, like.shape[1:], 0
        self.file = path.open("wb")
        self.header_size = self.write_header()

    def write_header(self) -> int:
        """Write the header for the rows so far; return its size."""
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.rows, *self.row_shape)}
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, header)
        return self.file.tell()

    def append(self, rows: np.ndarray) -> None:
        """Append rows."""
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.rows += len(rows)

    def close(self) -> None:
        """Write the number of rows to the header, sync the file to disk and close it."""
        size = self.write_header()
        assert size == self.header_size, "NumPy leaves room in a header for the number of rows"
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class SplitWriter:
    """Writes the arrays of one split; `RowFinisher` gives rows the form that a `Dataset` has."""

    def __init__(self, folder: Path, split: str):
        self.folder, self.split = folder, split
        self.writers: dict[str, ArrayWriter] = {}
        self.finisher = RowFinisher()
        self.episodes = 0

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows of trajectories laid end to end; an episode may come in several pieces."""
        if not len(rows["last"]):
            return
        self.episodes += int(rows["last"].sum())
        finished = self.finisher.add(rows)
        if not self.writers:
            (self.folder / self.split).mkdir()
            for name in ROW_ARRAYS:
                self.writers[name] = ArrayWriter(array_path(self.folder, self.split, name), finished[name])
        for name, writer in self.writers.items():
            writer.append(finished[name])

    def close(self) -> dict[str, Any] | None:
        """Finish the files; return their entries of the manifest, or None if the split is empty."""
        if not self.writers:
            return None
        newest = self.finisher.close()
        for name, writer in self.writers.items():
            writer.append(newest[name])
            writer.close()
        sync_folder(self.folder / self.split)
        rows = self.writers["last"].rows
        counts = {"rows": rows, "episodes": self.episodes, "transitions": rows - self.episodes}
        return {**counts, **read_checksums(self.folder, self.split)}

    def abandon(self) -> None:
        """Close the files without finishing them."""
        for writer in self.writers.values():
            with contextlib.suppress(OSError):  # such as a full disk, which an earlier write reported
                writer.file.close()


class DatasetWriter:
    """Writes a dataset to a temporary folder and renames it when it is complete; after an error, nothing is left.

    Args:
        name: The name of the dataset.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        validation: The fraction of episodes to hold out.
        seed: The seed that chooses the held-out episodes.
        replace: Whether to replace an existing dataset of this name.
    """

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
        self.every = round(1 / validation) if validation else 0  # one of `every` episodes is held out
        self.episode = 0
        self.check_free()

    def check_free(self) -> None:
        """Raise `InputError` if the name is taken and may not be replaced."""
        if self.folder.exists() and not self.replace:
            raise InputError(f"the dataset {self.folder} exists already; choose another name or pass --replace")
        if self.folder.exists() and not (self.folder / MANIFEST).is_file():
            raise InputError(f"{self.folder} is not a dataset, so it is not replaced; choose another name")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            if not self.folder.parent.exists():
                stack.callback(remove_if_empty, self.folder.parent)
            self.partial.mkdir(parents=True, exist_ok=True)
            refusal = f"another process is writing the dataset {self.name}; wait for it"
            stack.enter_context(exclusive(self.partial, refusal))
            stack.callback(shutil.rmtree, self.partial, ignore_errors=True)
            empty_folder(self.partial)  # files of a killed process
            recover_folder(self.folder)
            self.check_free()
            self.splits = {split: SplitWriter(self.partial, split) for split in SPLITS}
            for split in self.splits.values():
                stack.callback(split.abandon)
            self.cleanup = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup.close()

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Write rows of trajectories laid end to end; an episode may come in several pieces.

        `held_out` [rows] determines the held-out episodes if it is given, otherwise the seed does.
        """
        if not rows:
            return
        last = rows["last"]
        episode = self.episode + np.cumsum(last) - last
        self.episode += int(last.sum())
        if "held_out" in rows:
            held_out, self.validation = rows["held_out"], 0.0
        else:
            held_out = np.isin(episode, [number for number in np.unique(episode).tolist() if self.is_held_out(number)])
        with writing(self.folder):
            for split, chosen in (("train", ~held_out), ("validation", held_out)):
                self.splits[split].append({name: rows[name][chosen] for name in ROW_ARRAYS})

    def is_held_out(self, episode: int) -> bool:
        """Return whether an episode is held out.

        The seed chooses one episode in each group of `every` episodes, never the first of a group, so that at least one
        is left for training.
        """
        if not self.every:
            return False
        group, number = divmod(episode, self.every)
        return number == 1 + np.random.default_rng((self.seed, group)).integers(self.every - 1)

    def publish(self, about: Mapping[str, Any]) -> Path:
        """Finish the dataset, move it to its final folder, and return this folder.

        Args:
            about: The entries of the manifest that describe the data and how steps were interpreted.
        """
        with writing(self.folder):
            splits = {name: split.close() for name, split in self.splits.items()}
        if splits["train"] is None:
            raise InputError("there is not one transition; nothing was written")
        entries = {"name": self.name, **about, "held_out": [self.validation, self.seed], "splits": splits}
        with writing(self.folder):
            write_manifest(self.partial, entries)
        self.check_free()
        replace_folder(self.partial, self.folder)
        return self.folder


def empty_folder(folder: Path) -> None:
    """Remove everything in a folder."""
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()
