"""Actors: networks whose output is an action, or the velocity of one.

Each has a separate encoder. Terms that depend only on the state are computed once per state, for any number of latents
or Euler steps.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.networks.encoders import Encoder, make_encoder
from drol.networks.mlp import MLP
from drol.transition import Spec


class GaussianActor(eqx.Module):
    """The mean `mu(s)` of a Gaussian policy with standard deviation 1, unbounded."""

    encoder: Encoder
    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        encoder_key, network_key = jax.random.split(key)
        self.encoder, size = make_encoder(encoder_key, spec)
        self.network = MLP(network_key, size, hidden_sizes, spec.action_size, out_scale=0.01)

    def __call__(self, observation: Array) -> Array:
        return self.network(self.encoder(observation))


class LatentActor(eqx.Module):
    """A one-step actor `f(s, z)`: one action for one latent, unbounded before clipping."""

    encoder: Encoder
    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        encoder_key, network_key = jax.random.split(key)
        self.encoder, size = make_encoder(encoder_key, spec)
        self.network = MLP(network_key, size + spec.action_size, hidden_sizes, spec.action_size)

    @property
    def action_size(self) -> int:
        return self.network.layers[-1].bias.shape[-1]

    def __call__(self, observation: Array, latent: Array) -> Array:
        features = self.encoder(observation)
        features = jnp.broadcast_to(features, (*latent.shape[:-1], features.shape[-1]))
        return self.network(jnp.concatenate([features, latent], -1))

    def candidates(self, observation: Array, latent: Array) -> Array:
        """Return `f(s, z_k)` [..., K, action] for the K latents [..., K, latent] of each state.

        The first layer is linear, so its product with the state is computed once for each state, not K times.
        """
        features = self.encoder(observation)  # [..., features]
        first = self.network.layers[0]
        size = features.shape[-1]
        embedded = features @ first.kernel[:size] + first.bias  # [..., hidden]
        x = embedded[..., None, :] + latent @ first.kernel[size:]  # [..., K, hidden]
        return self.network.after_first(x)


class VectorField(eqx.Module):
    """A velocity `v(s, x, c)` of a flow over actions; the conditions c are scalars such as the time."""

    encoder: Encoder
    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int], conditions: int = 1):
        encoder_key, network_key = jax.random.split(key)
        self.encoder, size = make_encoder(encoder_key, spec)
        self.network = MLP(network_key, size + spec.action_size + conditions, hidden_sizes, spec.action_size)

    @property
    def action_size(self) -> int:
        return self.network.layers[-1].bias.shape[-1]

    def __call__(self, observation: Array, x: Array, *conditions: Array | float) -> Array:
        return self.velocity(self.encoder(observation), x, *conditions)

    def velocity(self, features: Array, x: Array, *conditions: Array | float) -> Array:
        """Return the velocity at x [..., action] given the state's features; each condition is a number or [..., 1]."""
        columns = [jnp.broadcast_to(condition, (*x.shape[:-1], 1)) for condition in conditions]
        features = jnp.broadcast_to(features, (*x.shape[:-1], features.shape[-1]))
        return self.network(jnp.concatenate([features, x, *columns], -1))
