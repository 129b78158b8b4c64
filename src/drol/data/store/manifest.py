"""`dataset.json`: what a dataset on disk is, read strictly."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drol.errors import InputError

FORMAT = 1
MANIFEST = "dataset.json"
ENTRIES = {
    "format": int,
    "name": str,
    "action_low": list,
    "action_high": list,
    "actions_scaled": bool,
    "ends": str,
    "fields": dict,
    "counts": dict,
    "sources": list,
    "held_out": list,
    "splits": dict,
    "sha256": str,
}


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    manifest = {"format": FORMAT, **content}
    manifest["sha256"] = digest(manifest)
    assert manifest.keys() == ENTRIES.keys(), manifest.keys() ^ ENTRIES.keys()
    with (folder / MANIFEST).open("w") as file:
        json.dump(manifest, file, indent=1, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset; refused unless it is exactly what was written."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes(), object_pairs_hook=without_duplicates, parse_constant=refuse_constant)
    except OSError as error:
        raise InputError(f"{folder} is not a dataset; it has no {MANIFEST} ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); import the dataset again") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise InputError(f"{path} is not the manifest of a dataset; import the dataset again")
    if manifest["format"] != FORMAT:
        raise InputError(f"{path} has format {manifest['format']}; this version reads {FORMAT}, so import it again")
    odd = sorted(manifest.keys() ^ ENTRIES.keys())
    if odd:
        raise InputError(f"{path} lacks or should not have {odd[0]!r}; import the dataset again")
    if manifest["sha256"] != digest(manifest):
        raise InputError(f"{path} does not match its checksum; it was changed, so import the dataset again")
    return manifest


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an entry is there twice")
    return values


def refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def digest(manifest: Mapping[str, Any]) -> str:
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
