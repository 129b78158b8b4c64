"""The trajectories of an unfinished collection on disk, and the two files that they become.

`NAME.parts/` holds one file for each finished trajectory, written under another name, synced and renamed, so a kill
at any moment costs the trajectories in flight and nothing else.
"""

import contextlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.files.npz import read_npz
from drol.errors import InputError
from drol.storage import exclusive, sync_folder, write_whole, writing

COLLECTION, LOCK, JOINING = "collection.json", ".lock", "joining"
REQUIRED = ("observations", "actions", "terminals", "qpos", "qvel")
OPTIONAL = ("button_states",)


def unfinished_folder(path: Path) -> Path:
    """Return the folder of the finished trajectories of a file until all are there."""
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
        """Hold the folder for one command; it is made if it is not there."""
        with contextlib.ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                refusal = f"another process is collecting into {self.folder}; wait or choose another --out"
                stack.enter_context(exclusive(self.folder / LOCK, refusal))
            except OSError as error:
                raise InputError(f"cannot write to {self.folder} ({error.strerror}); choose another --out") from error
            yield

    def claim(self, collection: Mapping[str, Any]) -> None:
        """Record what is collected here; refuse a folder that holds something else."""
        path = self.folder / COLLECTION
        if not path.exists():
            write_whole(path, json.dumps(collection, indent=2))
            return
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{path} is damaged; delete the folder {self.folder} and collect again")
        for name, value in collection.items():
            if found.get(name) != value:
                raise InputError(
                    f"{self.folder} holds trajectories with {name} {found.get(name)!r}, not {value!r}; "
                    "finish that collection, delete the folder, or choose another --out"
                )

    def finished(self, total: int) -> tuple[dict[int, int], list[str]]:
        """Return the rows of each trajectory that is whole, and the names of damaged ones, which are deleted."""
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
        """Whether a command was stopped while it wrote the final files, so that they are its own to replace."""
        return (self.folder / JOINING).exists()

    def join(self, targets: Mapping[Path, Sequence[int]]) -> None:
        """Write each target from its trajectories, put all of them in place, and remove the folder."""
        partials = {target: target.with_name(f".{target.name}.partial") for target in targets}
        for target, numbers in targets.items():
            write_joined(partials[target], [self.path(number) for number in numbers])
        write_whole(self.folder / JOINING, b"")
        for target, partial in partials.items():
            partial.rename(target)
            sync_folder(target.parent)
        (self.folder / JOINING).unlink()
        shutil.rmtree(self.folder)


def write_joined(target: Path, parts: Sequence[Path]) -> None:
    """Write what np.savez_compressed would write of the parts' joined arrays, with one part in memory at a time."""
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
