"""`dataset.json`: the description of a dataset; each entry is checked before anything is used."""

import dataclasses
import hashlib
import json
import math
import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from drol import formats
from drol.data.dimensions import Dimensions
from drol.data.files.options import ENDS, FIELDS, Counts
from drol.data.rows import ROW_ARRAYS
from drol.data.store.layout import MANIFEST, NAME, SPLITS, open_plain
from drol.errors import InputError
from drol.storage import write_synced

FORMAT = formats.WRITTEN["dataset"]
LARGEST_BYTES = 1 << 26  # of a manifest; the names of a million files fit
LARGEST_COUNT = 1 << 62
ADVICE = "import the dataset again"


@dataclasses.dataclass(frozen=True)
class Kind:
    """What an entry may be: in words, and as a test."""

    words: str
    allows: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a finite number."""
    return math.isfinite(value) if type(value) is float else type(value) is int and abs(value) < LARGEST_COUNT


def all_are(kind: Kind, values: Collection[Any]) -> bool:
    """Return whether all values are of a kind."""
    return all(map(kind.allows, values))


TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
COUNT = Kind("a whole number from 0", lambda value: type(value) is int and 0 <= value < LARGEST_COUNT)
CHECKSUM = Kind("a SHA-256", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)
NUMBERS = Kind(
    "a list of finite numbers", lambda value: isinstance(value, list) and len(value) > 0 and all(map(is_number, value))
)
COUNTS = Kind("counts by field", lambda value: isinstance(value, dict) and all_are(COUNT, value.values()))
TEXTS = Kind("texts by field", lambda value: isinstance(value, dict) and all_are(TEXT, value.values()))
LINES = Kind("a list of texts", lambda value: isinstance(value, list) and all_are(TEXT, value))
ENTRIES = Kind("entries by name", lambda value: isinstance(value, dict))
FILE_ENTRIES = {"name": TEXT, "bytes": COUNT}
COUNT_ENTRIES = {each.name: COUNT for each in dataclasses.fields(Counts)} | {
    "not_finite": COUNTS,
    "converted": TEXTS,
    "filled": COUNTS,
}
DIMENSION_ENTRIES = {"names": LINES, "units": LINES, "frames": LINES}
SAMPLING_ENTRIES = {"column": TEXT, "unit": TEXT} | dict.fromkeys(
    ("interval", "low", "high"), Kind("a number", is_number)
)
SPLIT_ENTRIES = {"rows": COUNT, "episodes": COUNT, "transitions": COUNT, "sha256": ENTRIES, "fingerprint": CHECKSUM}
MANIFEST_ENTRIES = {
    "format": COUNT,
    "name": Kind("the name of a dataset", lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None),
    "action_low": NUMBERS,
    "action_high": NUMBERS,
    "actions_scaled": FLAG,
    "ends": Kind(f"one of {', '.join(ENDS)}", lambda value: value in ENDS),
    "fields": TEXTS,
    "dimensions": ENTRIES,
    "sampling": Kind("entries by name, or null", lambda value: value is None or isinstance(value, dict)),
    "unused": Kind(
        "a list of names, kinds and reasons",
        lambda value: isinstance(value, list) and all(LINES.allows(each) and len(each) == 3 for each in value),
    ),
    "notes": LINES,
    "counts": ENTRIES,
    "files": Kind("a list of files", lambda value: isinstance(value, list)),
    "held_out": Kind(
        "a share and a seed",
        lambda value: isinstance(value, list) and len(value) == 2 and is_number(value[0]) and COUNT.allows(value[1]),
    ),
    "splits": ENTRIES,
    "sha256": CHECKSUM,
}
# What format 3 added, and what stands for it in a manifest of format 2.
NEW_ENTRIES = {"dimensions": {"observation": None, "action": None}, "sampling": None, "unused": [], "notes": []}
NEW_COUNTS = {"splits": 0, "reached": 0, "filled": {}}


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
        with open_plain(path) as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{folder} is not a dataset; it has no {MANIFEST} ({error.strerror})") from error
    if len(content) > LARGEST_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_BYTES:,} bytes; {ADVICE}")
    try:
        manifest = json.loads(content, object_pairs_hook=refuse_duplicates, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); {ADVICE}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise InputError(f"{path} is not the manifest of a dataset; {ADVICE}")
    if manifest["format"] > FORMAT:
        formats.check_format("dataset", path, manifest["format"])
    if manifest["format"] not in formats.READ["dataset"]:
        raise InputError(f"{path} has format {manifest['format']}; this version reads {FORMAT}, so import it again")
    changed = f"{path} does not match its checksum; it was changed, so import the dataset again"
    if manifest["format"] == 2 and isinstance(manifest.get("counts"), dict):
        if manifest.get("sha256") != digest(manifest):
            raise InputError(changed)
        manifest = {**manifest, **NEW_ENTRIES, "counts": {**manifest["counts"], **NEW_COUNTS}}
        manifest["sha256"] = digest(manifest)
    check_manifest(path, manifest)
    if manifest["sha256"] != digest(manifest):
        raise InputError(changed)
    return manifest


def check_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raise `InputError` unless a manifest has every entry, no other, and each is what it may be."""
    check_entries(path, manifest, MANIFEST_ENTRIES)
    check_entries(path, manifest["counts"], COUNT_ENTRIES)
    for file in manifest["files"]:
        check_entries(path, file, FILE_ENTRIES)
    check_entries(path, manifest["dimensions"], dict.fromkeys(("observation", "action"), Kind("names", lambda _: True)))
    for what, each in manifest["dimensions"].items():
        size = len(manifest["action_low"]) if what == "action" else None
        check_dimensions(path, each, size)
    if manifest["sampling"] is not None:
        check_entries(path, manifest["sampling"], SAMPLING_ENTRIES)
    low, high, fields = (manifest[name] for name in ("action_low", "action_high", "fields"))
    if len(low) != len(high) or any(map(float.__gt__, map(float, low), map(float, high))):
        raise InputError(f"{path} has actions from {reprlib.repr(low)} to {reprlib.repr(high)}; {ADVICE}")
    if not {"observation", "action"} <= fields.keys() <= set(FIELDS):
        raise InputError(f"{path} has the fields {reprlib.repr(sorted(fields))}; {ADVICE}")
    check_entries(path, manifest["splits"], dict.fromkeys(SPLITS, Kind("entries by name, or null", lambda _: True)))
    for name, split in manifest["splits"].items():
        if split is not None or name == "train":
            check_split(path, name, split)


def check_dimensions(path: Path, found: Any, size: int | None) -> None:
    """Raise `InputError` unless names of numbers are lists that fit."""
    if found is None:
        return
    check_entries(path, found, DIMENSION_ENTRIES)
    try:
        Dimensions.from_dict(found, len(found["names"]) if size is None else size)
    except InputError as error:
        raise InputError(f"{path} has wrong names of numbers ({error}); {ADVICE}") from error


def check_split(path: Path, name: str, split: Any) -> None:
    """Raise `InputError` unless what a manifest says of a split is complete and adds up."""
    check_entries(path, split, SPLIT_ENTRIES)
    check_entries(path, split["sha256"], dict.fromkeys(ROW_ARRAYS, CHECKSUM))
    rows, episodes, transitions = (split[each] for each in ("rows", "episodes", "transitions"))
    if not 0 < episodes <= transitions == rows - episodes:
        raise InputError(
            f"{path} has {rows} rows as {episodes} episodes of {transitions} transitions in {name!r}; {ADVICE}"
        )


def check_entries(path: Path, content: Any, entries: Mapping[str, Kind]) -> None:
    """Raise `InputError` unless there is every entry, no other, and each is what it may be."""
    if not isinstance(content, dict):
        raise InputError(f"{path} has {reprlib.repr(content)} in place of {', '.join(entries)}; {ADVICE}")
    odd = sorted(content.keys() ^ entries.keys())
    if odd:
        raise InputError(f"{path} lacks or should not have {reprlib.repr(odd[0])}; {ADVICE}")
    for name, kind in entries.items():
        if not kind.allows(content[name]):
            raise InputError(f"{path} has {reprlib.repr(content[name])} as {name!r}; it must be {kind.words}; {ADVICE}")


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
