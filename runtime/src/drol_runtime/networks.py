"""Multi-layer perceptrons in NumPy that write into buffers: linear layers, GELU and, in critics, LayerNorm.

A small network spends its time on passes over a few hundred numbers, so the code makes few passes. The
bias is an additional row of the kernel; the input has a column of ones for it. The tanh form of GELU is
`x sigmoid(a x + b x^3)`. With `y = -b^(1/3) x` it equals `y / (1 + exp(y (y^2 + c)))` times `-b^(-1/3)`. Both factors
are part of the kernels before and after it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR
INTO, OUT_OF = -(CUBIC ** (1 / 3)), -(CUBIC ** (-1 / 3))
SHIFT = np.asarray([LINEAR * CUBIC ** (-1 / 3)], np.float32)  # arrays, because NumPy is slower with scalars
ONE, MINUS_ONE = np.ones(1, np.float32), -np.ones(1, np.float32)
SMALLEST_VARIANCE = np.float32(1e-6)


class Buffers(NamedTuple):
    """The buffers of a network for a number of rows."""

    input: Any  # [rows, in]; the caller writes the input here before a call
    layers: list[Any]  # of each layer: its input with a column of ones, its kernel, its output, scratch
    statistics: Any  # [members, rows, 1]
    output: Any  # [members, rows, out]


class Network:
    """One network, or an ensemble of networks of the same shape with the same input."""

    def __init__(self, weights: dict[str, Any], name: str, shape: dict[str, Any]):
        self.kernels, self.norms = [], []
        last = shape["layers"] - 1
        for layer in range(shape["layers"]):
            kernel, bias = (weights[f"{name}/{layer}/{part}"].astype(np.float64) for part in ("kernel", "bias"))
            if layer > 0 and not shape["layer_norm"]:
                kernel = kernel * OUT_OF
            joined = np.concatenate([kernel, bias[:, None]], 1) * (INTO if layer < last else 1.0)
            self.kernels.append(np.ascontiguousarray(joined, np.float32))
            if shape["layer_norm"] and layer < last:
                scale, shift = (weights[f"{name}/{layer}/norm_{part}"][:, None] for part in ("scale", "bias"))
                self.norms.append((scale, shift))

    def buffers(self, rows: int) -> Buffers:
        """Return buffers for `rows` rows; the layers of a single network without LayerNorm have no ensemble axis.

        That is faster.
        """
        members = len(self.kernels[0])
        seen = [np.ones((1, rows, self.kernels[0].shape[1]), np.float32)]
        seen += [np.ones((members, rows, kernel.shape[1]), np.float32) for kernel in self.kernels[1:]]
        products = [each[..., :-1] for each in seen]
        output = np.empty((members, rows, self.kernels[-1].shape[2]), np.float32)
        hidden = [(out, np.empty(out.shape, np.float32)) for out in products[1:]]
        layers = [
            (before, kernel, out, scratch)
            for before, kernel, (out, scratch) in zip(seen, self.kernels, [*hidden, (output, None)])
        ]
        if members == 1 and not self.norms:
            layers = [tuple(part if part is None else part[0] for part in layer) for layer in layers]
        return Buffers(products[0][0], layers, np.empty((members, rows, 1), np.float32), output)

    def __call__(self, buffers: Buffers) -> Any:
        """Return the output [members, rows, out] for the input in the buffers; the next call overwrites it."""
        norms = iter(self.norms)
        for seen, kernel, out, scratch in buffers.layers:
            np.matmul(seen, kernel, out=out)
            if scratch is not None:
                np.multiply(out, out, out=scratch)
                np.add(scratch, SHIFT, out=scratch)
                np.multiply(scratch, out, out=scratch)
                np.exp(scratch, out=scratch)  # may be infinite; the quotient is then 0
                np.add(scratch, ONE, out=scratch)
                np.divide(out, scratch, out=out)
                if self.norms:
                    normalise(out, scratch, buffers.statistics, *next(norms))
        return buffers.output


def normalise(x: Any, scratch: Any, statistics: Any, scale: Any, bias: Any) -> None:
    """Normalise the features of each row to mean 0 and variance 1 in place, then scale and shift them."""
    np.multiply(x, np.float32(OUT_OF), out=x)
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
    """Write the input of a network: the state, x unless it is None, and the conditions."""
    place = state.shape[1]
    into[:, :place] = state
    if x is not None:
        into[:, place : place + x.shape[1]] = x
        place += x.shape[1]
    for number, value in enumerate(conditions):
        into[:, place + number] = value
