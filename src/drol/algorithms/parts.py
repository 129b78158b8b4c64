"""Pure functions and values that algorithms are made of."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from drol.types import Metrics

Network = TypeVar("Network", bound=Any)

ADAM = optax.scale_by_adam()  # betas 0.9 and 0.999, epsilon 1e-8; no decay, no clipping


class Trainable(eqx.Module, Generic[Network]):
    """A network and the state of its optimiser."""

    network: Network
    optimiser: Any


def trainable(network: Network) -> Trainable[Network]:
    """A network before its first step."""
    return Trainable(network, ADAM.init(network))


def descend(
    trained: Trainable[Network],
    learning_rate: float | Array,
    loss: Callable[..., tuple[Array, Metrics]],
    *arguments: Any,
) -> tuple[Trainable[Network], Metrics]:
    """One Adam step down the gradient of `loss(network, *arguments)` with respect to the network."""
    gradient, metrics = jax.grad(loss, has_aux=True)(trained.network, *arguments)
    direction, optimiser = ADAM.update(gradient, trained.optimiser)
    network = jax.tree.map(lambda old, step: old - learning_rate * step, trained.network, direction)
    return Trainable(network, optimiser), metrics


def polyak(online: Network, target: Network, rate: float | Array) -> Network:
    """Move the target a share `rate` of the way to the online network."""
    return jax.tree.map(lambda new, old: rate * new + (1 - rate) * old, online, target)


def clip(action: Array) -> Array:
    """Into the box [-1, 1]; the slope is 1 inside and 0 outside."""
    return jnp.clip(action, -1.0, 1.0)


def aggregate(values: Array, how: str) -> Array:
    """One value from those of an ensemble [ensemble, ...]: their mean or their minimum."""
    return values.min(0) if how == "min" else values.mean(0)


def uniform_in_ball(key: Array, shape: tuple[int, ...], radius: float) -> Array:
    """Points uniform in a ball; the last axis of `shape` is its dimension."""
    direction_key, radius_key = jax.random.split(key)
    normal = jax.random.normal(direction_key, shape)
    uniform = jax.random.uniform(radius_key, (*shape[:-1], 1))
    return ball_point(normal, uniform, radius)


def ball_point(normal: Array, uniform: Array, radius: float) -> Array:
    """`R u^(1/d) v / |v|` for a normal draw v and a uniform draw u, with the small constants of the released code."""
    length = jnp.sqrt(jnp.square(normal).sum(-1, keepdims=True) + 1e-6) + 1e-8
    return radius * uniform ** (1 / (normal.shape[-1] + 1e-8)) * normal / length
