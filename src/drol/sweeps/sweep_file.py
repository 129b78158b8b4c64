"""Read a sweep from a TOML file; unknown keys are rejected with the nearest known key."""

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NotRequired

from drol.decoding import Setting, entries, located, read_toml
from drol.errors import InputError
from drol.sweeps.sweep import Budget, Parameter, Search, Sweep

MOST_VALUES = 100_000  # in a range
Number = int | float
ParameterTable = entries(
    **{
        "values": NotRequired[tuple[Setting, ...]],
        "from": NotRequired[Number],
        "to": NotRequired[Number],
        "step": NotRequired[Number],
        "distribution": NotRequired[str],
        "methods": NotRequired[tuple[str, ...]],
    }
)
SweepFile = entries(
    name=str,
    tasks=tuple[str, ...],
    methods=tuple[str, ...],
    seeds=NotRequired[tuple[int, ...]],
    preset=NotRequired[str],
    root=NotRequired[str],
    seeds_per_run=NotRequired[int],
    settings=NotRequired[dict[str, Setting]],
    parameters=NotRequired[dict[str, tuple[Setting, ...] | ParameterTable]],
    search=NotRequired[Search],
    budget=NotRequired[Budget],
)


def read_sweep(path: Path | str) -> Sweep:
    """Read a sweep.

    Args:
        path: The file; `drol sweep new` writes an example.
    """
    path = Path(path)
    try:
        values = read_toml(path, SweepFile)
    except OSError as error:
        raise InputError(f"cannot read the sweep {path} ({error.strerror}); `drol sweep new` writes one") from error
    return located(path, lambda: sweep_from(values))


def sweep_from(values: Mapping[str, Any]) -> Sweep:
    """Return the sweep from the content of a file."""
    parameters = values.get("parameters", {}).items()
    changes: dict[str, Any] = {"parameters": tuple(read_parameter(name, value) for name, value in parameters)}
    if "root" in values:
        changes["root"] = Path(values["root"])
    return Sweep(**{**values, **changes})


def read_parameter(name: str, value: tuple[Setting, ...] | Mapping[str, Any]) -> Parameter:
    """Return a parameter from a list, or from a table with values, a range or a distribution."""
    if isinstance(value, tuple):
        return Parameter(name, value)
    what, methods, distribution = f"parameters.{name}", value.get("methods"), value.get("distribution")
    low, high = value.get("from", 0), value.get("to", 0)
    shape = {*value} - {"methods"}
    if shape == {"values"} or (shape == {"values", "distribution"} and distribution == "choice"):
        return Parameter(name, value.get("values", ()), distribution, methods=methods)
    if shape == {"from", "to", "step"}:
        return Parameter(name, tuple(range_values(what, low, high, value.get("step", 0))), methods=methods)
    if shape == {"from", "to", "distribution"} and distribution != "choice":
        return Parameter(name, (), distribution, low, high, methods)
    raise InputError(
        f"{what} has {', '.join(value)}; it must have values, or from, to and step, or from, to and distribution, or "
        "values and distribution = 'choice'; and methods if it applies only to some methods"
    )


def range_values(what: str, low: float, high: float, step: float) -> Iterable[float]:
    """Yield the numbers of a range, both ends included, rounded to 12 digits to remove floating-point noise."""
    try:
        fits = step > 0 and (high - low) / step < MOST_VALUES
    except OverflowError:  # an integer with hundreds of digits
        fits = False
    if not fits:
        raise InputError(
            f"step of {what} is {step}; it must be above 0, and so that there are at most {MOST_VALUES:,} values"
        )
    count = int((high - low) / step + 1e-9) + 1 if high >= low else 0
    for number in range(count):
        value = low + number * step
        yield value if isinstance(value, int) else float(f"{value:.12g}")


def write_example(path: Path | str) -> Path:
    """Write an example sweep file with comments; the example runs in one or two minutes.

    Args:
        path: The file; `InputError` is raised if it exists.
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
