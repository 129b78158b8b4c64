"""Critics: an ensemble of Q-functions evaluated as one, and a value function."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.networks.mlp import MLP
from drol.types import Spec


class QEnsemble(eqx.Module):
    """Independently initialised critics `Q_j(s, a)`; their arrays are stacked, so one call runs them all."""

    members: MLP  # every array has the ensemble as its first axis

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int], size: int = 2, conditions: int = 0):
        in_size = spec.observation_size + spec.action_size + conditions

        def member(key: Array) -> MLP:
            return MLP(key, in_size, hidden_sizes, 1, layer_norm=True)

        self.members = jax.vmap(member)(jax.random.split(key, size))

    def __call__(self, observation: Array, action: Array, *conditions: Array | float) -> Array:
        """The values [ensemble, ...] of actions; each condition is a number or [..., 1]."""
        columns = [jnp.broadcast_to(condition, (*action.shape[:-1], 1)) for condition in conditions]
        x = jnp.concatenate([observation, action, *columns], -1)
        return jax.vmap(lambda member: member(x))(self.members)[..., 0]


class ValueFunction(eqx.Module):
    """`V(s)`."""

    network: MLP

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int]):
        self.network = MLP(key, spec.observation_size, hidden_sizes, 1, layer_norm=True)

    def __call__(self, observation: Array) -> Array:
        return self.network(observation)[..., 0]
