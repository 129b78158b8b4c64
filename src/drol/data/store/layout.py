"""Folders and names of imported datasets on disk.

NAME/dataset.json             the manifest: a description of the data and of its import, with checksums
NAME/train/*.npy              one file for each array of `ROW_ARRAYS`, in the layout of `Dataset`
NAME/validation/*.npy         the same for the held-out episodes, if there are any
.NAME.partial, .NAME.old      a dataset that is being written or replaced
"""

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from drol.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
OLD = re.compile(r"\.(.+)\.old")  # see `drol.storage.replace_folder`
MANIFEST = "dataset.json"
SPLITS = ("train", "validation")


def data_root() -> Path:
    """Return the folder of all imported datasets: `$DROL_DATA`, or `datasets` in the current folder."""
    return Path(os.environ.get("DROL_DATA") or "datasets")


def dataset_folder(name: str, root: Path | None = None) -> Path:
    """Return the folder of a dataset; raise `InputError` for a name that leads out of the root."""
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
    """Return the names of all datasets in the root, including datasets whose replacement was interrupted."""
    root = root or data_root()
    if not root.is_dir():
        return []
    names = {path.parent.name for path in root.glob(f"*/{MANIFEST}")}
    names |= {match[1] for path in root.glob(f".*.old/{MANIFEST}") if (match := OLD.fullmatch(path.parent.name))}
    return sorted(name for name in names if NAME.fullmatch(name))


def array_path(folder: Path, split: str, name: str) -> Path:
    """Return the file of an array in the folder of a dataset."""
    return folder / split / f"{name}.npy"


def open_plain(path: Path) -> BinaryIO:
    """Open a regular file of a dataset; raise `InputError` for links and special files such as pipes."""
    if path.is_symlink() or path.parent.is_symlink():
        raise InputError(f"{path} cannot be used (it is a link); put the file itself there")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path} cannot be used (it is no plain file); put the file itself there")
    return path.open("rb")
