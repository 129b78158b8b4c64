"""Store the trajectories of an unfinished collection on disk, and join them to the final files.

`NAME.parts/` holds one file for each finished trajectory. Each is written to a temporary file, synced and renamed, so
that a kill loses only the trajectories in progress.
"""

import contextlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.npz import read_npz
from drol.decoding import read_json
from drol.errors import InputError
from drol.storage import exclusive, sync_folder, write_whole, writing

COLLECTION, LOCK, JOINING = "collection.json", ".lock", "joining"
REQUIRED = ("observations", "actions", "terminals", "qpos", "qvel")
OPTIONAL = ("button_states",)


def unfinished_folder(path: Path) -> Path:
    """Return the folder for the trajectories of a file until the collection is complete."""
    return path.with_name(f"{path.stem}.parts")


class UnfinishedCollection:
    """The folder of an unfinished collection."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, number: int) -> Path:
        """Return the file of a trajectory."""
        return self.folder / f"{number:06d}.npz"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder if it does not exist, and lock it for this command."""
        with contextlib.ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                refusal = f"another process is collecting into {self.folder}; wait or choose another --out"
                stack.enter_context(exclusive(self.folder / LOCK, refusal))
            except OSError as error:
                raise InputError(f"cannot write to {self.folder} ({error.strerror}); choose another --out") from error
            yield

    def claim(self, collection: Mapping[str, Any]) -> None:
        """Record the settings of the collection; raise `InputError` if the folder has other settings."""
        path = self.folder / COLLECTION
        if not path.exists():
            write_whole(path, json.dumps(collection, indent=2))
            return
        try:
            found = read_json(path, dict[str, Any])
        except InputError as error:
            raise InputError(f"{error}; delete the folder {self.folder} and collect again") from error
        for name, value in collection.items():
            if found.get(name) != value:
                raise InputError(
                    f"{self.folder} holds trajectories with {name} {found.get(name)!r}, not {value!r}; "
                    "finish that collection, delete the folder, or choose another --out"
                )

    def finished(self, total: int) -> tuple[dict[int, int], list[str]]:
        """Return the number of rows of each valid trajectory, and the names of damaged files, which are deleted."""
        rows, damaged = {}, []
        for path in sorted(self.folder.glob("*.npz")):
            if not path.stem.isdecimal() or int(path.stem) >= total:
                continue
            try:
                rows[int(path.stem)] = len(read_npz(path, REQUIRED, OPTIONAL)["terminals"])
            except InputError:
                damaged.append(path.name)
                path.unlink()
        for path in self.folder.glob(".*.partial"):
            path.unlink(missing_ok=True)
        return rows, damaged

    def write(self, number: int, trajectory: Mapping[str, np.ndarray]) -> None:
        """Write a finished trajectory."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **trajectory)  # pyright: ignore[reportArgumentType]
        write_whole(self.path(number), buffer.getvalue())

    @property
    def is_joining(self) -> bool:
        """Whether a command was stopped while it wrote the final files, so that they may be replaced."""
        return (self.folder / JOINING).exists()

    def join(self, targets: Mapping[Path, Sequence[int]], finish: Callable[[], object] = lambda: None) -> None:
        """Write each target from its trajectories, rename all of them, call `finish`, and delete the folder."""
        partials = {target: target.with_name(f".{target.name}.partial") for target in targets}
        for target, numbers in targets.items():
            write_joined(partials[target], [self.path(number) for number in numbers])
        write_whole(self.folder / JOINING, b"")
        for target, partial in partials.items():
            partial.rename(target)
            sync_folder(target.parent)
        finish()
        (self.folder / JOINING).unlink()
        shutil.rmtree(self.folder)


def write_joined(target: Path, parts: Sequence[Path]) -> None:
    """Write the concatenated arrays as np.savez_compressed does, with one part in memory at a time."""
    first = read_npz(parts[0], REQUIRED, OPTIONAL)
    rows = sum(len(read_npz(part, ("terminals",))["terminals"]) for part in parts)
    try:
        with writing(target), target.open("wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, array in first.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        header = np.lib.format.header_data_from_array_1_0(array) | {"shape": (rows, *array.shape[1:])}
                        np.lib.format.write_array_header_1_0(member, header)  # pyright: ignore[reportArgumentType]
                        for part in parts:
                            member.write(np.ascontiguousarray(read_npz(part, (name,))[name]).data.cast("B"))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        raise
