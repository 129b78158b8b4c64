"""The algorithms by name; adding one is a file and a line here."""

import difflib

from drol.algorithms.base import Algorithm
from drol.algorithms.drol import DROL
from drol.errors import InputError

ALGORITHMS: dict[str, type[Algorithm]] = {"drol": DROL}


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
