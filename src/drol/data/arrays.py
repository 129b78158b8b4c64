"""Read arrays from npz files that somebody else wrote: nothing is unpickled, every fault is one clear line."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from drol.errors import InputError


def read_npz(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The named arrays of an npz file; an array that is required must be there, one that is optional may be."""
    if not path.is_file():
        raise InputError(f"dataset file {path} does not exist; give the path of an .npz file")
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise InputError(
                    f"dataset file {path} holds a single array; it must be an .npz file with {list(required)}"
                )
            missing = [name for name in required if name not in file]
            if missing:
                raise InputError(f"dataset file {path} has the arrays {sorted(file)} but lacks {missing}")
            return {name: file[name] for name in (*required, *optional) if name in file}
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"dataset file {path} is truncated or damaged ({error}); fetch or collect it again") from error
    except ValueError as error:
        raise InputError(f"dataset file {path} is not an .npz file of plain arrays ({error})") from error
