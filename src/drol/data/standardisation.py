"""The shift and scale of observations, for training data in memory, training data on disk, and policies."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.data.moments import LARGEST, SMALLEST_DEVIATION
from drol.errors import InputError
from drol.transition import Spec

SMALLEST = float(np.finfo(np.float32).tiny)


class Standardisation(eqx.Module):
    """The shift and scale of observations in training; mean 0 and standard deviation 1 change nothing."""

    mean: Array  # [*observation]
    deviation: Array  # [*observation]

    def __call__(self, observation: Array) -> Array:
        """Return the networks' input for observations [..., *observation]: (observation - mean) / deviation."""
        return (observation - self.mean) / self.deviation

    @classmethod
    def identity(cls, spec: Spec) -> Self:
        """Return the standardisation that changes nothing."""
        return cls(jnp.zeros(spec.observation_shape), jnp.ones(spec.observation_shape))

    @classmethod
    def from_moments(cls, mean: Array | np.ndarray, deviation: Array | np.ndarray, scale: float = 1.0) -> Self:
        """Return the standardisation that maps data with these moments to mean 0 and standard deviation `scale`.
        A constant dimension is shifted to 0 and multiplied by `scale`.
        """
        wide = np.asarray(deviation, np.float64)
        divisor = np.where(wide < SMALLEST_DEVIATION, 1.0, wide) / scale
        wrong = np.flatnonzero(~((divisor >= SMALLEST) & (divisor <= LARGEST)))
        if len(wrong):
            raise InputError(
                f"observation dimension {wrong[0]} has the deviation {wide.flat[wrong[0]]:.4g}, which cannot be made "
                f"{scale:g}; give it in another unit, or choose another --observation-scale"
            )
        return cls(jnp.asarray(mean, jnp.float32), jnp.asarray(divisor, jnp.float32))
