"""The trajectories of an unfinished collection on disk, and the two files that they become.

`NAME.parts/` holds one file for each finished trajectory, written under another name, synced and renamed, so a kill
at any moment costs the trajectories in flight and nothing else.
"""

import fcntl
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.files.npz import read_npz
from drol.errors import InputError

COLLECTION, LOCK, JOINING = "collection.json", ".lock", "joining"
REQUIRED = ("observations", "actions", "terminals", "qpos", "qvel")
OPTIONAL = ("button_states",)


class Parts:
    """The folder of an unfinished collection."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one command; it is made if need be."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / LOCK).open("a+")
        except OSError as error:
            raise InputError(f"cannot write to {self.folder} ({error.strerror}); choose another --out") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"another process is collecting into {self.folder}; wait or choose another --out"
                ) from error
            yield

    def claim(self, collection: Mapping[str, Any]) -> None:
        """Say what is collected here; a folder that says something else is refused."""
        path = self.folder / COLLECTION
        if not path.exists():
            write_whole(path, json.dumps(collection, indent=2).encode())
            return
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
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
        """The rows of each trajectory that is whole; one that is damaged is deleted and named."""
        rows, damaged = {}, []
        for path in sorted(self.folder.glob("*.npz")):
            if not path.stem.isdigit() or int(path.stem) >= total:
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
    """What np.savez_compressed would write of the parts' concatenated arrays, with one part in memory at a time."""
    first = read_npz(parts[0], REQUIRED, OPTIONAL)
    rows = sum(len(read_npz(part, ("terminals",))["terminals"]) for part in parts)
    try:
        with target.open("wb") as file:
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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, whatever happens."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
