"""Read and write `config.json` of a run."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired

from drol.decoding import Scalar, convert, entries, located, read_json
from drol.errors import InputError
from drol.formats import FORMATS, check_format
from drol.runs.config import RunConfig
from drol.storage import write_whole

CONFIG = "config.json"
Value = Scalar | list[Scalar | list[Scalar]] | None


Values = dict[str, Value | dict[str, Value]]
# Only two settings are required, because an older run lacks newer settings. `RunConfig` checks the bounds.
SETTINGS = {each.name: NotRequired[each.type] for each in dataclasses.fields(RunConfig)}
Settings = entries(**{**SETTINGS, "algorithm": entries(name=str), "task": str})
Config = entries(
    format=int,
    run=Values,
    dataset_fingerprint=str,
    dimensions=NotRequired[dict[str, dict[str, list[str]] | None]],
    circumstances=Values,
)


def write_config(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `config.json` with its format version."""
    write_whole(folder / CONFIG, json.dumps({"format": FORMATS["run"], **content}, indent=2) + "\n")


def read_config(folder: Path) -> dict[str, Any]:
    """Return the settings of a run, the fingerprint of its data, and its circumstances (versions, machine)."""
    path = folder / CONFIG
    try:
        content = read_json(path, dict[str, Any])
    except OSError as error:
        raise InputError(f"{folder} is not a run folder: it has no {CONFIG}") from error
    check_format("run", path, content.get("format"))
    located(path, lambda: convert(content.get("run"), Settings, "run", extra=True))
    return located(path, lambda: convert(content, Config, extra=True))
