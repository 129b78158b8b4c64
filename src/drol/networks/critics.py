"""Critics: an ensemble of Q-functions evaluated as one."""

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

    def __init__(self, key: Array, spec: Spec, hidden_sizes: Sequence[int], size: int = 2):
        in_size = spec.observation_size + spec.action_size

        def member(key: Array) -> MLP:
            return MLP(key, in_size, hidden_sizes, 1, layer_norm=True)

        self.members = jax.vmap(member)(jax.random.split(key, size))

    def __call__(self, observation: Array, action: Array) -> Array:
        x = jnp.concatenate([observation, action], -1)
        return jax.vmap(lambda member: member(x))(self.members)[..., 0]  # [ensemble, batch]
