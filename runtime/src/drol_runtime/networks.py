"""Multi-layer perceptrons in NumPy that write into buffers: linear layers, GELU and, in critics, LayerNorm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

# gelu(x) = x / (1 + exp(-2 c (x + 0.044715 x^3))), c = sqrt(2 / pi): the form with tanh, with fewer passes
LINEAR = np.float32(-2 * math.sqrt(2 / math.pi))
CUBIC = np.float32(0.044715 * LINEAR)
ONE = np.float32(1)
SMALLEST_VARIANCE = np.float32(1e-6)


class Buffers(NamedTuple):
    """What a network writes to, for a number of rows."""

    input: Any  # [rows, in]
    layers: list[Any]  # of each layer [members, rows, out]
    scratch: list[Any]  # as large as each hidden layer
    statistics: Any  # [members, rows, 1]


class Network:
    """One network, or several of the same shape that see the same input."""

    def __init__(self, weights: dict[str, Any], name: str, shape: dict[str, Any]):
        count = shape["layers"]
        self.kernels = [np.ascontiguousarray(weights[f"{name}/{layer}/kernel"]) for layer in range(count)]
        self.biases = [weights[f"{name}/{layer}/bias"][:, None] for layer in range(count)]
        self.norms = [
            (weights[f"{name}/{layer}/norm_scale"][:, None], weights[f"{name}/{layer}/norm_bias"][:, None])
            for layer in range(count - 1)
            if shape["layer_norm"]
        ]

    def buffers(self, rows: int) -> Buffers:
        """Return buffers for so many rows."""
        layers = [np.empty((len(kernel), rows, kernel.shape[2]), np.float32) for kernel in self.kernels]
        scratch = [np.empty_like(layer) for layer in layers[:-1]]
        statistics = np.empty((len(self.kernels[0]), rows, 1), np.float32)
        return Buffers(np.empty((rows, self.kernels[0].shape[1]), np.float32), layers, scratch, statistics)

    def __call__(self, buffers: Buffers) -> Any:
        """Return the output [members, rows, out] for the input in the buffers; it is a buffer, too."""
        x = buffers.input
        for number, (kernel, bias) in enumerate(zip(self.kernels, self.biases)):
            out = buffers.layers[number]
            for member in range(len(kernel)):
                np.dot(x if number == 0 else x[member], kernel[member], out=out[member])
            np.add(out, bias, out=out)
            if number < len(self.kernels) - 1:
                gelu(out, buffers.scratch[number])
                if self.norms:
                    normalise(out, buffers.scratch[number], buffers.statistics, *self.norms[number])
            x = out
        return x


def gelu(x: Any, scratch: Any) -> None:
    """Apply GELU in place."""
    np.multiply(x, x, out=scratch)
    np.multiply(scratch, CUBIC, out=scratch)
    np.add(scratch, LINEAR, out=scratch)
    np.multiply(scratch, x, out=scratch)
    np.exp(np.minimum(scratch, np.float32(80), out=scratch), out=scratch)  # beyond, the quotient is 0 anyway
    np.add(scratch, ONE, out=scratch)
    np.divide(x, scratch, out=x)


def normalise(x: Any, scratch: Any, statistics: Any, scale: Any, bias: Any) -> None:
    """Bring the features of each row to mean 0 and variance 1 in place, then scale and shift them."""
    np.mean(x, axis=-1, keepdims=True, out=statistics)
    np.subtract(x, statistics, out=x)
    np.multiply(x, x, out=scratch)
    np.mean(scratch, axis=-1, keepdims=True, out=statistics)
    np.add(statistics, SMALLEST_VARIANCE, out=statistics)
    np.sqrt(statistics, out=statistics)
    np.divide(x, statistics, out=x)
    np.multiply(x, scale, out=x)
    np.add(x, bias, out=x)


def copy_columns(into: Any, state: Any, x: Any, conditions: list[float]) -> None:
    """Write what a network sees: the state, x if it sees it, and its conditions."""
    place = state.shape[1]
    into[:, :place] = state
    if x is not None:
        into[:, place : place + x.shape[1]] = x
        place += x.shape[1]
    for number, value in enumerate(conditions):
        into[:, place + number] = value
