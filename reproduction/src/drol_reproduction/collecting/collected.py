"""Write and read the record of a collected dataset: `NAME.json` with the recipe, the experts and the hashes.

The hashes are computed from the arrays, so they do not depend on the compression. This module does not import jax.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drol.data.readers.hdf5 import open_hdf5
from drol.data.readers.npz import BLOCK_BYTES, Member, list_names, open_npz
from drol.data.trajectory_rows import Fingerprint
from drol.errors import InputError
from drol.storage import exclusive, write_whole
from drol_reproduction.experts.expert import read_expert


def expert_name(expert: Path) -> str:
    """Return the name of an expert, which is the name of its folder."""
    return (expert if expert.is_dir() else expert.parent).resolve().name


def default_path(dataset: str, suffix: str, experts: Sequence[Path]) -> Path:
    """Return the default file of a dataset; its name includes the experts."""
    return Path("-".join([dataset, *map(expert_name, experts)]) + suffix)


def record_path(path: Path) -> Path:
    """Return the record of a file of collected data."""
    return path.with_suffix(".json")


def write_record(
    dataset: str,
    files: Mapping[Path, int],
    *,
    recipe: Mapping[str, Any],
    episodes: int,
    seed: int,
    experts: Sequence[Path],
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Write the record of collected files and return it.

    Args:
        dataset: The name of the dataset whose recipe was used.
        files: The files with their numbers of transitions, the training file first.
        recipe: The settings of the recipe.
        episodes: The number of episodes for training.
        seed: The seed of the collection.
        experts: The policy folders.
        versions: The versions of packages that may change the arrays.
    """
    path = next(iter(files))
    command = ["drol", "data", "collect", dataset, "--episodes", str(episodes), "--seed", str(seed)]
    for expert in experts:
        command += ["--expert", expert_name(expert)]
    command += ["--out", path.name] if path.stem != dataset else []
    record = {
        "name": path.stem,
        "dataset": dataset,
        "seed": seed,
        "episodes": episodes,
        "files": {file.name: {"transitions": count, "sha256": content_sha256(file)} for file, count in files.items()},
        "recipe": dict(recipe),
        "experts": [{"name": expert_name(each), "sha256": read_expert(each).digest()} for each in experts],
        "versions": dict(versions),
        "command": shlex.join(command),
    }
    write_whole(record_path(path), json.dumps(record, indent=2) + "\n")
    return record


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a file of collected data; None if there is no record."""
    record = record_path(path)
    if not record.is_file():
        return None
    try:
        found = json.loads(record.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{record} is not JSON ({error})") from error
    if not isinstance(found, dict) or not isinstance(found.get("files"), dict):
        raise InputError(f"{record} is not the record of a collection: it lacks 'files'")
    return found


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of all arrays of an npz or HDF5 file (name, type, shape and bytes), sorted by name."""
    fingerprint = Fingerprint()
    if path.suffix != ".npz":
        with open_hdf5(path) as file:
            for name in sorted(file.names()):
                array = file.read(name)
                fingerprint.begin_array(name, array.dtype, array.shape)
                fingerprint.add_bytes(array.tobytes())
        return fingerprint.hexdigest()
    with open_npz(path, ()) as archive:
        for name in sorted(list_names(archive)):
            member = Member.find(archive, name)
            fingerprint.begin_array(name, member.dtype, member.shape)
            rows = max(1, BLOCK_BYTES * member.shape[0] // max(1, member.header.nbytes))
            with member.open_rows() as reader:
                for first in range(0, member.shape[0], rows):
                    fingerprint.add_bytes(reader.read(min(rows, member.shape[0] - first)).tobytes())
    return fingerprint.hexdigest()


def read_fingerprints(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of fingerprints; an empty list if the file does not exist."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); choose another file") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{path} is not a list of records; choose another file")
    return found


def append_fingerprint(path: Path, record: Mapping[str, Any]) -> None:
    """Add the record of a collection to a JSON file; it replaces the record of the same name and command."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(path.parent, None):
        same = [record.get("name"), record.get("command")]
        others = [each for each in read_fingerprints(path) if [each.get("name"), each.get("command")] != same]
        write_whole(path, json.dumps([*others, dict(record)], indent=2) + "\n")
