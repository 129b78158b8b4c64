"""Minari's metadata.json: the box of actions, and whether the last row of an episode is only its final observation."""

import json
import math
from pathlib import Path
from typing import Any

from drol.data.actions import ActionBox
from drol.data.files.beside.description import Description, find_above, read_json
from drol.errors import InputError

FILE = "metadata.json"
PADDED = ("arrow", "parquet")  # their columns are all as long as the observations


def describe_minari(path: Path) -> Description | None:
    """Return what Minari says of a file of its steps; None if Minari did not write it."""
    beside = find_above(path, FILE, 1) if path.suffix == ".hdf5" else find_above(path.parent, FILE, 1)
    if beside is None:
        return None
    found = read_json(beside)
    if not isinstance(found, dict) or "action_space" not in found:
        return None
    try:
        space = found["action_space"]
        space = json.loads(space) if isinstance(space, str) else space
        box = box_of(space)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError) as error:
        raise InputError(f"{beside} has an action space that cannot be read ({error}); write it again") from error
    notes = ()
    if box is None and isinstance(space, dict):
        notes = (f"the action space of {FILE} is {str(space.get('type'))[:40]}, not a finite box",)
    return Description(beside, box=box, has_final=found.get("data_format") in PADDED, notes=notes)


def box_of(space: Any) -> ActionBox | None:
    """Return the box of an action space; None if it is no box, or without an end."""
    if space["type"] != "Box":
        return None
    low, high = (list(map(float, flat(space[side]))) for side in ("low", "high"))
    if not low or not all(map(math.isfinite, [*low, *high])):
        return None
    return ActionBox(tuple(low), tuple(high))


def flat(values: Any) -> list[Any]:
    """Return the numbers of lists in lists."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]
