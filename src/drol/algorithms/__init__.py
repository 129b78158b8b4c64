"""The algorithms by name; adding one is a file and a line here."""

import difflib

from drol.algorithms.base import Algorithm
from drol.algorithms.bc import BC
from drol.algorithms.deflow import DeFlow
from drol.algorithms.drol import DROL
from drol.algorithms.fawac import FAWAC
from drol.algorithms.fbrac import FBRAC
from drol.algorithms.fql import FQL
from drol.algorithms.ifql import IFQL
from drol.algorithms.iql import IQL
from drol.algorithms.rebrac import ReBRAC
from drol.algorithms.sorl import SORL
from drol.errors import InputError

ALGORITHMS: dict[str, type[Algorithm]] = {
    "drol": DROL,
    "bc": BC,
    "iql": IQL,
    "rebrac": ReBRAC,
    "fawac": FAWAC,
    "fbrac": FBRAC,
    "ifql": IFQL,
    "deflow": DeFlow,
    "sorl": SORL,
    "fql": FQL,
}


def find_algorithm(name: str) -> type[Algorithm]:
    """The algorithm of this name; an unknown name is answered with the nearest."""
    if name not in ALGORITHMS:
        nearest = difflib.get_close_matches(name, ALGORITHMS, 1, cutoff=0)[0]
        raise InputError(f"unknown algorithm {name!r}; did you mean {nearest}? Known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def algorithm_name(algorithm: Algorithm) -> str:
    """The name under which an algorithm is registered; one that is not is called by its class."""
    for name, kind in ALGORITHMS.items():
        if type(algorithm) is kind:
            return name
    return type(algorithm).__name__


__all__ = ["ALGORITHMS", "Algorithm", "algorithm_name", "find_algorithm"]
