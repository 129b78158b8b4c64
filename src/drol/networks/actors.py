"""Actors: networks whose output is an action, or the velocity of one."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from drol.networks.mlp import MLP
from drol.types import Spec


class GaussianActor(eqx.Module):
    """The mean `mu(s)` of a Gaussian policy with standard deviation 1, unbounded."""

    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        self.network = MLP(key, spec.observation_size, hidden_sizes, spec.action_size, out_scale=0.01)

    def __call__(self, observation: Array) -> Array:
        return self.network(observation)


class LatentActor(eqx.Module):
    """A one-step actor `f(s, z)`: one action for one latent, unbounded before clipping."""

    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        self.network = MLP(key, spec.observation_size + spec.action_size, hidden_sizes, spec.action_size)

    @property
    def action_size(self) -> int:
        return self.network.layers[-1].bias.shape[-1]

    def __call__(self, observation: Array, latent: Array) -> Array:
        return self.network(jnp.concatenate([observation, latent], -1))

    def candidates(self, observation: Array, latent: Array) -> Array:
        """`f(s, z_k)` for the K latents [..., K, latent] of each state [..., observation].

        The first layer is linear, so its part that sees the state is computed once for each state, not K times.
        """
        first = self.network.layers[0]
        size = observation.shape[-1]
        embedded = observation @ first.kernel[:size] + first.bias  # [..., hidden]
        x = embedded[..., None, :] + latent @ first.kernel[size:]  # [..., K, hidden]
        return self.network.after_first(x)


class VectorField(eqx.Module):
    """A velocity `v(s, x, c)` of a flow over actions; the conditions c are scalars such as the time."""

    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int], conditions: int = 1):
        in_size = spec.observation_size + spec.action_size + conditions
        self.network = MLP(key, in_size, hidden_sizes, spec.action_size)

    @property
    def action_size(self) -> int:
        return self.network.layers[-1].bias.shape[-1]

    def __call__(self, observation: Array, x: Array, *conditions: Array | float) -> Array:
        """The velocity at x [..., action]; each condition is a number or [..., 1]."""
        columns = [jnp.broadcast_to(condition, (*x.shape[:-1], 1)) for condition in conditions]
        return self.network(jnp.concatenate([observation, x, *columns], -1))
