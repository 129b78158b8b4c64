"""Read and write `dataset.json`, the manifest of a dataset; every entry is checked before use."""

import hashlib
import json
import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta

from drol.data.dimensions import Dimensions
from drol.data.import_options import ENDS, FIELDS, Counts
from drol.data.store.layout import MANIFEST, NAME, open_plain
from drol.data.trajectory_rows import ROW_ARRAYS
from drol.decoding import Checksum, Count, Decoded, Finite, convert, entries, located, read_json
from drol.errors import InputError
from drol.formats import FORMATS, check_format
from drol.storage import write_synced

ADVICE = "import the dataset again"


Texts = list[str]
Dimension = entries(names=Texts, units=Texts, frames=Texts) | None
Sampling = entries(column=str, unit=str, interval=Finite, low=Finite, high=Finite) | None
Split = entries(
    rows=Count,
    episodes=Count,
    transitions=Count,
    sha256=entries(**dict.fromkeys(ROW_ARRAYS, Checksum)),
    fingerprint=Checksum,
)
COUNTED = {int: Count, dict[str, int]: dict[str, Count]}
Manifest = entries(
    format=Count,
    name=Annotated[str, Meta(pattern=rf"\A(?:{NAME.pattern})\Z")],
    action_low=Annotated[list[Finite], Meta(min_length=1)],
    action_high=Annotated[list[Finite], Meta(min_length=1)],
    actions_scaled=bool,
    ends=Literal[ENDS],
    fields=dict[str, str],
    dimensions=entries(observation=Dimension, action=Dimension),
    sampling=Sampling,
    unused=list[Annotated[Texts, Meta(min_length=3, max_length=3)]],  # name, type and reason
    notes=Texts,
    counts=entries(**{name: COUNTED.get(kind, kind) for name, kind in get_type_hints(Counts).items()}),
    files=list[entries(name=str, bytes=Count)],
    transform=entries(name=str, sha256=str) | None,
    held_out=tuple[Finite, Count],  # a fraction and a seed
    splits=entries(train=Split, validation=Split | None),
    sha256=Checksum,
)


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a dataset and sync it to disk."""
    manifest = {"format": FORMATS["dataset"], **content}
    manifest["sha256"] = digest(manifest)
    text = json.dumps(manifest, indent=1, allow_nan=False) + "\n"
    check_manifest(json.loads(text))
    write_synced(folder / MANIFEST, text.encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a dataset; raise `InputError` if it is missing, invalid or modified."""
    path = folder / MANIFEST
    try:
        content = advised(lambda: read_json(path, dict[str, Any], opened=open_plain))
    except OSError as error:
        raise InputError(f"{folder} is not a dataset; it has no {MANIFEST} ({error.strerror})") from error
    check_format("dataset", path, content.get("format"), ADVICE)
    return advised(lambda: located(path, lambda: check_manifest(content)))


def advised(decode: Callable[[], Decoded]) -> Decoded:
    """Return the result of `decode`; append `ADVICE` to the message of its `InputError`."""
    try:
        return decode()
    except InputError as error:
        raise InputError(f"{error}; {ADVICE}") from error


def check_manifest(content: dict[str, Any]) -> dict[str, Any]:
    """Return a validated manifest; raise `InputError` unless its entries are consistent and match its checksum."""
    manifest = convert(content, Manifest)
    if manifest["sha256"] != digest(content):
        raise InputError("the content does not match its checksum, so it was changed")
    low, high, fields = manifest["action_low"], manifest["action_high"], manifest["fields"]
    if len(low) != len(high) or any(map(float.__gt__, low, high)):
        raise InputError(f"action_low: expected {len(high)} numbers, none above action_high, got {reprlib.repr(low)}")
    if not {"observation", "action"} <= fields.keys() <= set(FIELDS):
        raise InputError(f"fields: expected observation, action and perhaps others, got {reprlib.repr(sorted(fields))}")
    dimensions = manifest["dimensions"]
    located("dimensions.observation", lambda: Dimensions.from_dict(dimensions["observation"]))
    located("dimensions.action", lambda: Dimensions.from_dict(dimensions["action"], len(low)))
    for name, split in manifest["splits"].items():
        if split and not 0 < split["episodes"] <= split["transitions"] == split["rows"] - split["episodes"]:
            sizes = ", ".join(f"{split[each]} {each}" for each in ("rows", "episodes", "transitions"))
            raise InputError(f"splits.{name}: expected as many transitions as rows without episodes, got {sizes}")
    return manifest


def digest(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of all entries except the checksum itself."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
