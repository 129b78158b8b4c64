"""Count the floating-point operations of an update's matrix products from its trace."""

import math
from collections.abc import Callable
from typing import Any

import jax

from drol.algorithms.base import Algorithm
from drol.data.dataset import Dataset


def matmul_operations(function: Callable, *arguments: Any) -> int:
    """Return the floating-point operations of all matrix products in a traced function."""

    def count(jaxpr: Any) -> int:
        total = 0
        for equation in jaxpr.eqns:
            if equation.primitive.name == "dot_general":
                (contracted, _), _ = equation.params["dimension_numbers"]
                left = equation.invars[0].aval.shape
                total += 2 * equation.outvars[0].aval.size * math.prod(left[axis] for axis in contracted)
            repeats = equation.params.get("length", 1)  # of a scan
            inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
            total += repeats * sum(count(each) for each in inner if hasattr(each, "eqns"))
            total += max((count(branch.jaxpr) for branch in equation.params.get("branches", ())), default=0)
        return total

    return count(jax.make_jaxpr(function)(*arguments).jaxpr)


def update_operations(algorithm: Algorithm, dataset: Dataset) -> int:
    """Return the floating-point operations of the matrix products of one update."""
    key = jax.random.key(0)
    state = jax.eval_shape(lambda key: algorithm.init(key, dataset.spec), key)
    batch = jax.eval_shape(lambda key: dataset.sample(key, algorithm.batch_size), key)
    return matmul_operations(algorithm.update, state, batch, key)
