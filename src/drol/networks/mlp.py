"""Multi-layer perceptrons on whole batches: the last axis is features, all others are rows.

Kernels are [in, out] and a batch is multiplied from the left, so one layer is one matrix product without a transpose;
`eqx.nn.Linear` stores [out, in] and takes a single row.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Linear(eqx.Module):
    """`x @ kernel + bias`, Glorot-uniform kernel scaled by `sqrt(scale)`, zero bias."""

    kernel: Array  # [in, out]
    bias: Array  # [out]

    def __init__(self, key: Array, in_size: int, out_size: int, scale: float = 1.0):
        initialise = jax.nn.initializers.variance_scaling(scale, "fan_avg", "uniform")
        self.kernel = initialise(key, (in_size, out_size))
        self.bias = jnp.zeros(out_size)

    def __call__(self, x: Array) -> Array:
        return x @ self.kernel + self.bias


class LayerNorm(eqx.Module):
    """Normalise the features of a row to mean 0 and variance 1, then scale and shift them."""

    scale: Array
    bias: Array

    def __init__(self, size: int):
        self.scale = jnp.ones(size)
        self.bias = jnp.zeros(size)

    def __call__(self, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-6) * self.scale + self.bias


class MLP(eqx.Module):
    """Hidden layers of Linear, GELU and, if requested, LayerNorm (in this order), then a linear output."""

    layers: tuple[Linear, ...]
    norms: tuple[LayerNorm, ...]  # one for each hidden layer, or none

    def __init__(
        self,
        key: Array,
        in_size: int,
        hidden_sizes: Sequence[int],
        out_size: int,
        layer_norm: bool = False,
        out_scale: float = 1.0,
    ):
        sizes = (in_size, *hidden_sizes, out_size)
        keys = jax.random.split(key, len(sizes) - 1)
        scales = (1.0,) * len(hidden_sizes) + (out_scale,)
        self.layers = tuple(Linear(*arguments) for arguments in zip(keys, sizes[:-1], sizes[1:], scales, strict=True))
        self.norms = tuple(LayerNorm(size) for size in hidden_sizes) if layer_norm else ()

    def __call__(self, x: Array) -> Array:
        return self.after_first(self.layers[0](x))

    def after_first(self, x: Array) -> Array:
        """Return the output of the network, given the output of its first layer."""
        for index, layer in enumerate(self.layers[1:]):
            x = jax.nn.gelu(x)
            if self.norms:
                x = self.norms[index](x)
            x = layer(x)
        return x
