"""The choices of a sweep's parameters: all combinations, or reproducible random draws."""

import dataclasses
import itertools
import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from drol.algorithms import find_algorithm
from drol.errors import InputError
from drol.runs.config import RunConfig
from drol.sweeps.sweep import Parameter, Sweep

MOST_CHOICES = 100_000  # for one method on one task
DIGITS = 4  # significant digits of drawn numbers, so that the names of runs stay readable


def choices(sweep: Sweep, method: str) -> Iterator[dict[str, Any]]:
    """Yield the choices of the parameters of a method; appended values do not change the order of the others."""
    own = [each for each in sweep.parameters if each.applies_to(method)]
    count = sweep.search.samples or math.prod(len(each.values) for each in own)
    if count > MOST_CHOICES:
        raise InputError(f"the sweep has {count:,} choices for {method}; it may have at most {MOST_CHOICES:,}")
    if sweep.search.samples is not None:
        for number in range(sweep.search.samples if own else 1):
            yield {each.name: draw(each, method, sweep.search.seed, number) for each in own}
    else:
        for values in itertools.product(*(each.values for each in own)):
            yield dict(zip((each.name for each in own), values, strict=True))


def draw(parameter: Parameter, method: str, seed: int, number: int) -> Any:
    """Return the value of a parameter in draw `number`.

    It does not depend on the other draws or parameters, so that both can be added later.
    """
    generator = np.random.default_rng([seed, number, zlib.crc32(parameter.name.encode())])
    if parameter.values:
        return parameter.values[int(generator.random() * len(parameter.values))]
    low, high, whole = float(parameter.low or 0), float(parameter.high or 0), is_whole(method, parameter.name)
    if parameter.distribution == "log_uniform":
        value = math.exp(generator.uniform(math.log(low), math.log(high)))
    else:
        value = generator.uniform(low - 0.5, high + 0.5) if whole else generator.uniform(low, high)
    if whole:
        return min(max(round(value), math.ceil(low)), math.floor(high))
    return min(max(float(f"{value:.{DIGITS}g}"), low), high)


def is_whole(method: str, name: str) -> bool:
    """Return whether a hyperparameter or setting is an integer."""
    fields = (*dataclasses.fields(find_algorithm(method)), *dataclasses.fields(RunConfig))
    return any(each.name == name and type(each.default) is int for each in fields)
