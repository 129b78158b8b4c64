"""Critics: an ensemble of Q-functions evaluated as one, and a value function."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.networks.encoders import Encoder, make_encoder
from drol.networks.mlp import MLP
from drol.transition import Spec


class QEnsemble(eqx.Module):
    """Critics `Q_j(s, a)` with a shared encoder; their other arrays are stacked, so one call evaluates all critics."""

    encoder: Encoder
    members: MLP  # every array has the ensemble as its first axis

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int], size: int = 2, conditions: int = 0):
        encoder_key, members_key = jax.random.split(key)
        self.encoder, features = make_encoder(encoder_key, spec)

        def member(key: Array) -> MLP:
            return MLP(key, features + spec.action_size + conditions, hidden_sizes, 1, layer_norm=True)

        self.members = jax.vmap(member)(jax.random.split(members_key, size))

    def __call__(self, observation: Array, action: Array, *conditions: Array | float) -> Array:
        """Return the values [ensemble, ...] of actions [..., action]; each condition is a number or [..., 1].

        Several actions [N, action] may come with one observation, which is then encoded once.
        """
        columns = [jnp.broadcast_to(condition, (*action.shape[:-1], 1)) for condition in conditions]
        features = self.encoder(observation)
        features = jnp.broadcast_to(features, (*action.shape[:-1], features.shape[-1]))
        x = jnp.concatenate([features, action, *columns], -1)
        return jax.vmap(lambda member: member(x))(self.members)[..., 0]


class ValueFunction(eqx.Module):
    """`V(s)`."""

    encoder: Encoder
    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        encoder_key, network_key = jax.random.split(key)
        self.encoder, size = make_encoder(encoder_key, spec)
        self.network = MLP(network_key, size, hidden_sizes, 1, layer_norm=True)

    def __call__(self, observation: Array) -> Array:
        return self.network(self.encoder(observation))[..., 0]
