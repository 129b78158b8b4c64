"""What a setting may be: one declaration and one check, for the hyperparameters of algorithms and for runs alike."""

import dataclasses
import math
from typing import Any

from drol.errors import InputError

KINDS = {float: "a number", int: "a whole number", tuple: "whole numbers", bool: "true or false", str: "text"}


def bounds(
    description: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> dict[str, Any]:
    """Return the metadata of a dataclass field: the help text of its flag, and what its value may be.

    Args:
        description: The help text.
        minimum: The smallest number that is allowed; of a tuple, for each entry.
        maximum: The largest.
        choices: All values that are allowed.
    """
    return {"description": description, "minimum": minimum, "maximum": maximum, "choices": choices}


def allowed_words(field: dataclasses.Field) -> str:
    """Return what a field may be, in words: "from 0 to 1", "at least 1", "one of mean, min"."""
    choices, low, high = (field.metadata[name] for name in ("choices", "minimum", "maximum"))
    if choices is not None:
        return f"one of {', '.join(map(str, choices))}"
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    if low is not None:
        return f"at least {low:g}"
    if high is not None:
        return f"at most {high:g}"
    return "true or false" if isinstance(field.default, bool) else "finite"


def check_field(field: dataclasses.Field, value: Any) -> None:
    """Raise `InputError` for a value of the wrong type, outside the bounds, or not among the choices of a field."""
    name, kind = field.name, type(field.default)
    several = kind is tuple
    if several and (not isinstance(value, tuple) or not value):
        raise InputError(f"{name} is {value!r}; it must be a tuple of at least one whole number")
    if field.metadata["choices"] is not None:
        if value not in field.metadata["choices"] or isinstance(value, bool):
            raise InputError(f"{name} is {value!r}; it must be {allowed_words(field)}")
        return
    number_kinds: Any = (int, float) if kind is float else int if several else kind
    for number in value if several else (value,):
        wrong_kind = not isinstance(number, number_kinds) or (isinstance(number, bool) and kind is not bool)
        if wrong_kind:
            words = {float: "a number", bool: "true or false"}.get(
                kind, "a whole number" if kind in (int, tuple) else kind.__name__
            )
            raise InputError(f"{name} is {value!r}; it must be {words}")
        low, high = field.metadata["minimum"], field.metadata["maximum"]
        outside = (
            kind is not bool
            and kind is not str
            and (
                not math.isfinite(number) or (low is not None and number < low) or (high is not None and number > high)
            )
        )
        if outside:
            raise InputError(f"{name} is {value!r}; it must be {allowed_words(field)}")
