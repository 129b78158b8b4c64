"""`config.json` of a run, read strictly: it is what we write, or it is refused in one line before anything is used."""

import dataclasses
import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drol import formats
from drol.bounds import check_field
from drol.errors import InputError
from drol.runs.config import RunConfig
from drol.storage import write_whole

CONFIG = "config.json"
ENTRIES = {"run": dict, "dataset_fingerprint": str, "circumstances": dict}  # besides the format
LARGEST_BYTES = 1 << 22
LEVELS = 8  # of nesting
OPTIONAL_TEXT = ("start_from", "dataset")


def write_config(folder: Path, content: Mapping[str, Any]) -> None:
    """Write what determines a run, with the format."""
    write_whole(folder / CONFIG, json.dumps({"format": formats.WRITTEN["run"], **content}, indent=2) + "\n")


def read_config(folder: Path) -> dict[str, Any]:
    """Return the settings of a run, the fingerprint of its data, and where it was made; refuse what is no such file."""
    path = folder / CONFIG
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
        content = json.loads(text.decode()) if len(text) <= LARGEST_BYTES else None
    except OSError as error:
        raise InputError(f"{folder} is not a run folder: it has no {CONFIG}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error})") from error
    if not isinstance(content, dict) or is_nested(content, LEVELS):
        raise InputError(f"{path} does not describe a run; it must be as drol wrote it")
    formats.check_format("run", path, content.get("format", 1))  # the first runs had no format
    for name, kind in ENTRIES.items():
        check_kind(path, content, name, kind)
    settings = content["run"]
    check_kind(path, settings, "algorithm", dict)
    check_kind(path, settings["algorithm"], "name", str)
    check_kind(path, settings, "task", str)
    check_settings(path, settings)
    return content


def check_kind(path: Path, content: Mapping[str, Any], name: str, kind: type) -> None:
    """Raise `InputError` unless an entry is there and of its type."""
    if name not in content:
        raise InputError(f"{path} does not describe a run; it has no {name!r}")
    if type(content[name]) is not kind:
        raise InputError(f"{path} does not describe a run; it has {reprlib.repr(content[name])} as {name!r}")


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise `InputError` for a setting of the wrong type or outside its bounds; unknown names are refused later."""
    for field in dataclasses.fields(RunConfig):
        if field.name not in settings or field.name in ("algorithm", "task"):
            continue  # a run may be older than a setting
        value = settings[field.name]
        try:
            if field.name in OPTIONAL_TEXT and not isinstance(value, str | None):
                raise InputError(f"{field.name} is {reprlib.repr(value)}; it must be text")
            if field.name not in OPTIONAL_TEXT:
                check_field(field, tuple(value) if isinstance(value, list) else value)
        except InputError as error:
            raise InputError(f"{path} does not describe a run; {error}") from error


def is_nested(value: Any, levels: int) -> bool:
    """Return whether a value of JSON is nested more deeply than by so many levels."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_nested(each, levels - 1) for each in inside)
