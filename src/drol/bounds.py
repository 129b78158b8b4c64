"""Declare and check the allowed values of settings, for hyperparameters and runs alike."""

import dataclasses
import math
from typing import Any, NoReturn

from drol.errors import InputError

LARGEST = 2.0**1000  # limit of any number, well below infinity
LONGEST = 64  # entries of a tuple: layers of a network, seeds of a run
KINDS = {
    float: "a number",
    int: "a whole number",
    tuple: "one or more whole numbers",
    bool: "true or false",
    str: "text",
}


def bounds(
    description: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> dict[str, Any]:
    """Return the metadata of a dataclass field: the help text of its flag and its allowed values.

    Args:
        description: The help text.
        minimum: The smallest allowed number; for a tuple, of each entry.
        maximum: The largest allowed number.
        choices: All allowed values.
    """
    return {"description": description, "minimum": minimum, "maximum": maximum, "choices": choices}


def allowed_words(field: dataclasses.Field) -> str:
    """Describe the allowed values of a field: "from 0 to 1", "at least 1", "one of mean, min"."""
    choices, low, high = (field.metadata[name] for name in ("choices", "minimum", "maximum"))
    if choices is not None:
        return f"one of {', '.join(map(str, choices))}"
    lowest, highest = (f"{limit:,}" if isinstance(limit, int) else f"{limit:g}" for limit in (low or 0, high or 0))
    if low is not None and high is not None:
        return f"from {lowest} to {highest}"
    if low is not None or high is not None:
        return f"at least {lowest}" if low is not None else f"at most {highest}"
    return KINDS[bool] if isinstance(field.default, bool) else "finite"


def check_field(field: dataclasses.Field, value: Any) -> None:
    """Raise `InputError` for a value of the wrong type, outside the bounds, or not among the choices of a field."""

    def reject(words: str) -> NoReturn:
        raise InputError(f"{field.name} is {value!r}; it must be {words}")

    kind, choices = type(field.default), field.metadata["choices"]
    if choices is not None and (value not in choices or isinstance(value, bool)):
        reject(allowed_words(field))
    if kind is tuple and (not isinstance(value, tuple) or (field.default and not value)):
        reject(KINDS[kind])
    if kind is tuple and len(value) > LONGEST:
        raise InputError(f"{field.name} has {len(value):,} entries; it must have at most {LONGEST}")
    entry_kinds = {float: (int, float), tuple: (int,)}.get(kind, (kind,))
    low = -math.inf if field.metadata["minimum"] is None else field.metadata["minimum"]
    high = math.inf if field.metadata["maximum"] is None else field.metadata["maximum"]
    for entry in value if kind is tuple else (value,):
        if not isinstance(entry, entry_kinds) or (isinstance(entry, bool) and kind is not bool):
            reject(KINDS[kind])
        if isinstance(entry, int | float) and not (low <= entry <= high and abs(entry) < LARGEST):
            reject(allowed_words(field))


def check_at_least(name: str, value: int, least: int) -> None:
    """Raise `InputError` if an argument is not an integer of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number of at least {least}")
