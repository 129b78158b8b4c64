"""`dataset.json`: the description of a dataset on disk, read strictly."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drol import formats
from drol.data.rows import ROW_ARRAYS
from drol.data.store.layout import MANIFEST, SPLITS
from drol.errors import InputError
from drol.storage import write_synced

FORMAT = formats.WRITTEN["dataset"]
ENTRIES = {
    "format": int,
    "name": str,
    "action_low": list,
    "action_high": list,
    "actions_scaled": bool,
    "ends": str,
    "fields": dict,
    "counts": dict,
    "files": list,
    "held_out": list,
    "splits": dict,
    "sha256": str,
}
SPLIT_ENTRIES = {"rows": int, "episodes": int, "transitions": int, "sha256": dict, "fingerprint": str}


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a dataset and wait until it is on the disk."""
    manifest = {"format": FORMAT, **content}
    manifest["sha256"] = digest(manifest)
    path = folder / MANIFEST
    check_manifest(path, manifest)
    write_synced(path, (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a dataset; raise `InputError` unless it is exactly what was written."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes(), object_pairs_hook=refuse_duplicates, parse_constant=refuse_constant)
    except OSError as error:
        raise InputError(f"{folder} is not a dataset; it has no {MANIFEST} ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); import the dataset again") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise InputError(f"{path} is not the manifest of a dataset; import the dataset again")
    if manifest["format"] > FORMAT:
        formats.check_format("dataset", path, manifest["format"])
    if manifest["format"] != FORMAT:
        raise InputError(f"{path} has format {manifest['format']}; this version reads {FORMAT}, so import it again")
    check_manifest(path, manifest)
    if manifest["sha256"] != digest(manifest):
        raise InputError(f"{path} does not match its checksum; it was changed, so import the dataset again")
    return manifest


def check_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raise `InputError` unless a manifest has every entry, no other, and each is of its type."""
    check_entries(path, manifest, ENTRIES)
    check_entries(path, manifest["splits"], dict.fromkeys(SPLITS, dict | None))
    for split in manifest["splits"].values():
        if split is not None:
            check_entries(path, split, SPLIT_ENTRIES)
            check_entries(path, split["sha256"], dict.fromkeys(ROW_ARRAYS, str))


def check_entries(path: Path, content: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
    """Raise `InputError` unless there is every entry, no other, and each is of its type."""
    odd = sorted(content.keys() ^ entries.keys())
    if odd:
        raise InputError(f"{path} lacks or should not have {odd[0]!r}; import the dataset again")
    for name, kind in entries.items():
        value = content[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{path} has {value!r} as {name!r}, which has another type; import the dataset again")


def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of a JSON object; raise if one of them is there twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an entry is there twice")
    return values


def refuse_constant(word: str) -> None:
    """Raise for NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{word} is not a number")


def digest(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of all entries but the checksum."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
