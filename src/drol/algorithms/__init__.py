"""The registry of algorithms: built-in ones and yours.

`register_algorithm` makes your algorithm known in the same process. If an installed package declares it as an entry
point of the group "drol.algorithms", every process and the command line know it.
"""

import functools
import re
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any, TypeVar, overload

from drol.algorithms.base import Algorithm
from drol.algorithms.bc import BC
from drol.algorithms.beyond.bfn import BFN
from drol.algorithms.beyond.driftql import DriftQL
from drol.algorithms.beyond.drol_choice import DROLChoice
from drol.algorithms.beyond.drol_control import DROLControl
from drol.algorithms.beyond.gfp import GFP
from drol.algorithms.deflow import DeFlow
from drol.algorithms.drol import DROL
from drol.algorithms.drol_equation import DROLEquation
from drol.algorithms.fawac import FAWAC
from drol.algorithms.fbrac import FBRAC
from drol.algorithms.fql import FQL
from drol.algorithms.ifql import IFQL
from drol.algorithms.iql import IQL
from drol.algorithms.rebrac import ReBRAC
from drol.algorithms.sorl import SORL
from drol.errors import InputError, unknown_name

Kind = TypeVar("Kind", bound=type[Algorithm])

ALGORITHMS: dict[str, type[Algorithm]] = {
    "drol": DROL,
    "drol-equation": DROLEquation,
    "bc": BC,
    "iql": IQL,
    "rebrac": ReBRAC,
    "fawac": FAWAC,
    "fbrac": FBRAC,
    "ifql": IFQL,
    "deflow": DeFlow,
    "sorl": SORL,
    "fql": FQL,
    "driftql": DriftQL,
    "gfp": GFP,
    "bfn": BFN,
    "drol-choice": DROLChoice,
    "drol-control": DROLControl,
}
REGISTERED: dict[str, type[Algorithm]] = {}  # algorithms that are not built in
ENTRY_POINTS = "drol.algorithms"  # the group in which installed packages declare their algorithms


@overload
def register_algorithm(name: str) -> Callable[[Kind], Kind]: ...
@overload
def register_algorithm(name: str, kind: Kind) -> Kind: ...
def register_algorithm(name: str, kind: Any = None) -> Any:
    """Register an algorithm under a name; without the class, return a decorator. docs/extend.md has an example.

    Args:
        name: The name for `drol train --algorithm` and for the files of a run: letters, digits, - and _.
        kind: The class, a subclass of `Algorithm`; None to use `@register_algorithm("mine")` above a class.

    Returns:
        The class, or the decorator.
    """
    if kind is None:
        return functools.partial(register_algorithm, name)
    if not isinstance(kind, type) or not issubclass(kind, Algorithm):
        raise InputError(f"{kind!r} cannot be registered as {name!r}; it must be a subclass of drol.Algorithm")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise InputError(f"the name of an algorithm is {name!r}; it must be made of letters, digits, - and _")
    taken = (ALGORITHMS | REGISTERED).get(name, kind)
    if taken is not kind:
        raise InputError(f"the name {name!r} is taken by {taken.__module__}.{taken.__name__}; choose another one")
    if name not in ALGORITHMS:
        REGISTERED[name] = kind
    return kind


def known_algorithms() -> dict[str, type[Algorithm]]:
    """Return all algorithms by name: first built-in ones, then registered ones, then ones of installed packages."""
    load_entry_points()
    return ALGORITHMS | REGISTERED


@functools.cache
def load_entry_points() -> None:
    """Register the algorithms of installed packages once; warn about each algorithm that cannot be used.

    Every call imports all of them, so that a name in a run's file cannot decide which modules are imported.
    """
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        try:
            register_algorithm(entry.name, entry.load())
        except Exception as error:  # a faulty plugin must not break the other algorithms
            why = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(f"the algorithm {entry.name!r} of {entry.value} was left out: {why}", stacklevel=2)


def find_algorithm(name: str) -> type[Algorithm]:
    """Return the algorithm of this name; the error for an unknown name suggests the nearest name and `--import`."""
    known = known_algorithms()
    if name not in known:
        advice = "If it is yours, add --import MODULE, or import its module in Python."
        raise unknown_name("algorithm", name, known, f"{advice} Known: {', '.join(known)}")
    return known[name]


def algorithm_name(algorithm: Algorithm | type[Algorithm]) -> str:
    """Return the registered name of an algorithm or of its class; if it has none, the name of the class."""
    kind = algorithm if isinstance(algorithm, type) else type(algorithm)
    for name, known in known_algorithms().items():
        if kind is known:
            return name
    return kind.__name__


__all__ = [
    "ALGORITHMS",
    "BC",
    "BFN",
    "DROL",
    "FAWAC",
    "FBRAC",
    "FQL",
    "GFP",
    "IFQL",
    "IQL",
    "SORL",
    "Algorithm",
    "DROLChoice",
    "DROLControl",
    "DROLEquation",
    "DeFlow",
    "DriftQL",
    "ReBRAC",
    "algorithm_name",
    "find_algorithm",
    "known_algorithms",
    "register_algorithm",
]
