"""Read a sweep from a TOML file, strictly: what is not known is refused with the nearest name."""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from drol.errors import InputError, unknown_name
from drol.sweeps.sweep import Budget, Parameter, Search, Sweep

PARAMETER_KEYS = ("values", "from", "to", "step", "distribution", "methods")
MOST_VALUES = 100_000  # of a range
WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    (str,): "a list of texts",
    (int,): "a list of whole numbers",
    dict: "a table",
}
KEYS: dict[str, Any] = {
    "name": str, "tasks": (str,), "methods": (str,), "seeds": (int,), "preset": str, "root": str, "seeds_per_run": int,
    "settings": dict, "parameters": dict, "search": dict, "budget": dict,
}  # fmt: skip
SEARCH_KEYS: dict[str, Any] = {
    "kind": str, "samples": int, "seed": int, "metric": str, "goal": str, "at": (int,), "keep": float,
}  # fmt: skip
BUDGET_KEYS: dict[str, Any] = {"updates": int, "core_hours": float}


def read_sweep(path: Path | str) -> Sweep:
    """Read a sweep.

    Args:
        path: The file; `drol sweep new` writes one to begin with.
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the sweep {path} ({error.strerror}); `drol sweep new` writes one") from error
    except (ValueError, RecursionError) as error:  # a repeated key is one of these, brackets without end another
        raise InputError(f"the sweep {path} is not TOML ({error})") from error
    try:
        return sweep_from(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def sweep_from(values: Mapping[str, Any]) -> Sweep:
    """Return the sweep that the content of a file describes."""
    given = checked(values, KEYS, "a sweep")
    for name in ("name", "tasks", "methods"):
        if name not in given:
            raise InputError(f"{name} is missing; `drol sweep new` writes a sweep to begin with")
    if "root" in given:
        given["root"] = Path(given["root"])
    given["settings"] = {name: frozen(value, f"settings.{name}") for name, value in given.get("settings", {}).items()}
    parameters = given.get("parameters", {}).items()
    given["parameters"] = tuple(read_parameter(name, value) for name, value in parameters)
    given["search"] = Search(**checked(given.get("search", {}), SEARCH_KEYS, "[search]"))
    given["budget"] = Budget(**checked(given.get("budget", {}), BUDGET_KEYS, "[budget]"))
    return Sweep(**given)


def checked(values: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return values whose names and types are known; lists become tuples."""
    given = {}
    for name, value in values.items():
        if name not in kinds:
            raise unknown_name(f"key of {where}", name, kinds)
        kind = kinds[name]
        entries = value if isinstance(kind, tuple) and isinstance(value, list) else [value]
        wanted = kind[0] if isinstance(kind, tuple) else kind
        right = isinstance(value, list) == isinstance(kind, tuple)
        for entry in entries:
            right = right and isinstance(entry, (int, float) if wanted is float else wanted) and type(entry) is not bool
        if not right:
            raise InputError(f"{name} of {where} is {value!r}; it must be {WORDS[kind]}")
        given[name] = tuple(value) if isinstance(value, list) else value
    return given


def read_parameter(name: str, value: Any) -> Parameter:
    """Return a parameter: a list, a range, a distribution, or values with a condition."""
    what = f"parameters.{name}"
    if isinstance(value, list):
        return Parameter(name, tuple(frozen(each, what) for each in value))
    if not isinstance(value, dict):
        raise InputError(f"{what} is {value!r}; it must be a list, or a table with {', '.join(PARAMETER_KEYS)}")
    for key in value:
        if key not in PARAMETER_KEYS:
            raise unknown_name(f"key of {what}", key, PARAMETER_KEYS)
    methods = (
        checked({"methods": value["methods"]}, {"methods": (str,)}, what)["methods"] if "methods" in value else None
    )
    distribution = value.get("distribution")
    shape = {*value} - {"methods"}
    if shape == {"values"} or (shape == {"values", "distribution"} and distribution == "choice"):
        given = value["values"]
        if not isinstance(given, list):
            raise InputError(f"values of {what} is {given!r}; it must be a list")
        return Parameter(name, tuple(frozen(each, what) for each in given), distribution, methods=methods)
    ends = checked(
        {key: value[key] for key in ("from", "to", "step") if key in value},
        dict.fromkeys(("from", "to", "step"), float),
        what,
    )
    if shape == {"from", "to", "step"}:
        return Parameter(
            name,
            tuple(range_values(what, **{"low": ends["from"], "high": ends["to"], "step": ends["step"]})),
            methods=methods,
        )
    if shape == {"from", "to", "distribution"} and distribution != "choice":
        return Parameter(name, (), str(distribution), ends["from"], ends["to"], methods)
    raise InputError(
        f"{what} has {', '.join(value)}; it must have values, or from, to and step, or from, to and distribution, or "
        "values and distribution = 'choice'; and methods, where it is not for all of them"
    )


def range_values(what: str, low: float, high: float, step: float) -> Iterable[float]:
    """Return the numbers of a range, both ends included; without the noise of adding up fractions."""
    try:
        fits = step > 0 and (high - low) / step < MOST_VALUES
    except OverflowError:  # a number of hundreds of digits
        fits = False
    if not fits:
        raise InputError(
            f"step of {what} is {step}; it must be above 0, and so that there are at most {MOST_VALUES:,} values"
        )
    count = int((high - low) / step + 1e-9) + 1 if high >= low else 0
    for number in range(count):
        value = low + number * step
        yield value if isinstance(value, int) else float(f"{value:.12g}")


def frozen(value: Any, what: str) -> Any:
    """Return a value as settings have it: a list of numbers is a tuple."""
    if isinstance(value, list):
        return tuple(frozen(each, what) for each in value)
    if not isinstance(value, str | int | float):
        raise InputError(f"{what} is {value!r}; it must be a number, text, true or false, or a list of numbers")
    return value


def write_example(path: Path | str) -> Path:
    """Write a sweep to begin with, with comments; it runs as it is, in a minute or two.

    Args:
        path: The file; one that exists is refused.
    """
    path = Path(path)
    text = resources.files("drol.sweeps").joinpath("example.toml").read_text()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} exists already; give another name, or change it") from error
    except OSError as error:
        raise InputError(f"cannot write {path} ({error.strerror})") from error
    return path


assert set(SEARCH_KEYS) == {each.name for each in dataclasses.fields(Search)}
