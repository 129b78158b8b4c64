"""Decode JSON and TOML into typed structures.

msgspec checks the types. An invalid value raises an `InputError` of one line with the file, the path inside it, the
expected type and the value, such as `config.json: run.seeds[1]: expected an integer, got 'a'`.
"""

import difflib
import json
import re
import reprlib
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
from msgspec import Meta, inspect

from drol.errors import InputError

Decoded = TypeVar("Decoded")
Step = str | int  # of a path inside a value: a key or an index

LARGEST_BYTES = 1 << 26  # of a file; enough for the names of a million files
Count = Annotated[int, Meta(ge=0, le=2**62)]
Positive = Annotated[int, Meta(ge=1, le=2**62)]
Finite = Annotated[float, Meta(ge=-(2.0**1000), le=2.0**1000)]  # does not exclude NaN; `parse_json` rejects NaN
Checksum = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Scalar = bool | int | float | str
Setting = Scalar | tuple[Scalar, ...]  # a hyperparameter, or a setting of a run
WORDS = {
    "int": "an integer", "float": "a number", "str": "text", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip


def entries(**kinds: Any) -> Any:
    """Return a type for JSON objects with these keys; they are decoded as dictionaries."""
    return TypedDict("Entries", kinds)  # pyright: ignore[reportArgumentType]


def read_json(
    path: Path, kind: Any, *, extra: bool = False, nan: bool = False, opened: Callable[[Path], Any] | None = None
) -> Any:
    """Read a JSON file as a type.

    Args:
        path: The file. An `OSError` is not caught.
        kind: A type that msgspec knows: a dataclass, a TypedDict, `dict[str, int]` and so on.
        extra: Whether to ignore keys that the type does not have.
        nan: Whether NaN and Infinity are numbers.
        opened: A function that opens the file, instead of `Path.open`.
    """
    with opened(path) if opened else path.open("rb") as file:
        text = file.read(LARGEST_BYTES + 1)
    if len(text) > LARGEST_BYTES:
        raise InputError(f"{path}: the file is larger than {LARGEST_BYTES:,} bytes")
    return located(path, lambda: convert(parse_json(text, nan), kind, extra=extra))


def read_toml(path: Path, kind: Any) -> Any:
    """Read a TOML file as a type; keys that the type does not have are rejected."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # repeated keys; deeply nested brackets
        raise InputError(f"{path}: not TOML ({error})") from error
    return located(path, lambda: convert(values, kind))


def read_json_lines(path: Path, kind: type[Decoded]) -> list[Decoded]:
    """Read a file with one value of the type per line; return an empty list if there is no file."""
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else (), 1):
        try:
            found.append(convert(parse_json(line, nan=True), kind))
        except InputError as error:
            raise InputError(f"{path}: line {number}: {error}; remove that line") from error
    return found


def located(where: Path | str, decode: Callable[[], Decoded]) -> Decoded:
    """Return the result of `decode`; prefix the message of its `InputError` with the place."""
    try:
        return decode()
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def parse_json(text: bytes | str, nan: bool = False) -> Any:
    """Return the value of a JSON text; reject repeated keys.

    Args:
        text: The text.
        nan: Whether to accept NaN and Infinity, as in the rows of runs.
    """
    try:
        constant = None if nan else reject_constant
        text = text if isinstance(text, str) else text.decode()
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})") from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"repeated key {reprlib.repr(key)}")
        values[key] = value
    return values


def reject_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def convert(value: Any, kind: Any, path: str = "", *, extra: bool = False, strict: bool = True) -> Any:
    """Convert a value of JSON or TOML to a type.

    Args:
        value: The value.
        kind: The type.
        path: The place of the value in its file, for the error message.
        extra: Whether to ignore keys that the type does not have.
        strict: Whether to reject text if a number is expected.
    """
    try:
        found = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise InputError(explain(str(error), value, kind, path, strict)) from error
    if not extra:
        reject_unknown_keys(value, inspect.type_info(kind), path)
    return found


def explain(message: str, value: Any, kind: Any, path: str, strict: bool) -> str:
    """Return the message of a msgspec error with the complete path and the invalid value."""
    words, _, place = message.partition(" - at `")
    steps: list[Step] = []
    found = value
    for key, index in re.findall(r"\.(\w+)|\[([0-9.]+)\]", place):
        unnamed = index == "..."  # msgspec does not name the key of a dictionary
        step = failing_key(message, value, kind, steps, strict) if unnamed else key or int(index)
        steps.append(step)
        found, path = found[step], joined(path, step)
    if missing := re.fullmatch("Object missing required field `(.*)`", words):
        return f"{joined(path, missing[1])}: missing"
    if words.startswith("Invalid enum value"):
        words = f"Expected one of {', '.join(map(str, type_at(inspect.type_info(kind), steps).values))}"
    elif words.endswith("out of range"):
        words = "Expected `float`"
    if words.startswith("Expected"):
        words = re.sub("`(.*?)`", lambda names: " or ".join(WORDS.get(n, n) for n in names[1].split(" | ")), words)
        words = f"e{words[1:].partition(', got ')[0]}, got {reprlib.repr(found)}"
    return f"{path}: {words}" if path else words


def failing_key(message: str, value: Any, kind: Any, steps: Sequence[Step], strict: bool) -> str:
    """Return the key that causes an error in the dictionary at a path, by bisection over its keys."""

    def with_only(keys: list[str], value: Any, steps: Sequence[Step]) -> Any:
        if not steps:
            return {key: value[key] for key in keys}
        changed = value.copy()
        changed[steps[0]] = with_only(keys, value[steps[0]], steps[1:])
        return changed

    def fails(keys: list[str]) -> bool:
        try:
            msgspec.convert(with_only(keys, value, steps), kind, strict=strict)
        except msgspec.ValidationError as error:
            return str(error) == message
        return False

    found = value
    for step in steps:
        found = found[step]
    keys = list(found)
    while len(keys) > 1:
        half = len(keys) // 2
        keys = keys[:half] if fails(keys[:half]) else keys[half:]
    return keys[0]


def reject_unknown_keys(value: Any, info: inspect.Type, path: str) -> None:
    """Raise `InputError` for a key that a type does not have; the message has the nearest known key."""
    if isinstance(info, inspect.AnyType):
        return
    for each in info.types if isinstance(info, inspect.UnionType) else (info,):
        names = [field.encode_name for field in getattr(each, "fields", ())]
        odd = [key for key in value if key not in names] if names and isinstance(value, dict) else []
        if odd:
            nearest = difflib.get_close_matches(odd[0], names, 1, cutoff=0)[0]
            raise InputError(f"{joined(path, odd[0])}: unknown key; did you mean {nearest}?")
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for step, entry in inside:
        if isinstance(entry, dict | list | tuple):
            reject_unknown_keys(entry, type_at(info, [step]), joined(path, step))


def type_at(info: inspect.Type, steps: Sequence[Step]) -> Any:
    """Return the type of the value at a path inside a value of a type."""
    for step in steps:
        inside = []
        for each in info.types if isinstance(info, inspect.UnionType) else (info,):
            inside += [field.type for field in getattr(each, "fields", ()) if field.encode_name == step]
            inside += [getattr(each, name) for name in ("item_type", "value_type") if hasattr(each, name)]
            inside += each.item_types[step : step + 1] if isinstance(each, inspect.TupleType) else ()  # pyright: ignore
        info = inside[0] if inside else inspect.AnyType()
    return info


def joined(path: str, step: Step) -> str:
    """Append a step to a path; a key with unusual characters is shown as a Python literal."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    shown = step if re.fullmatch(r"[\w./-]{1,80}", step) else reprlib.repr(step)
    return f"{path}.{shown}" if path else shown
