"""BC: behaviour cloning with a Gaussian policy of standard deviation 1.

    L_actor = -log N(a; mu(s), I)                                                      (actor_loss)

It acts with the mean, clipped.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import Array

from drol.algorithms.base import Algorithm, hyperparameter
from drol.algorithms.parts import Trainable, clip, descend, gaussian_log_density, trainable
from drol.networks.actors import GaussianActor
from drol.types import Metrics, Spec, Transition


class BCState(eqx.Module):
    """Everything that learns."""

    actor: Trainable[GaussianActor]

    @property
    def policy(self) -> GaussianActor:
        return self.actor.network


class BC(Algorithm):
    """The mean action of the data: fast, and wrong where the data has several ways."""

    learning_rate: float = hyperparameter(3e-4, "step size of Adam", minimum=0)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of the actor", minimum=1
    )

    draws_actions: ClassVar = False
    presets: ClassVar = {"laptop": {"hidden_sizes": (128, 128, 128), "learning_rate": 1e-3}}

    def init(self, key: Array, spec: Spec) -> BCState:
        return BCState(trainable(GaussianActor(key, spec, self.hidden_sizes)))

    def update(self, state: BCState, batch: Transition, key: Array) -> tuple[BCState, Metrics]:  # noqa: ARG002
        return self.step(state, batch)

    def act(self, policy: GaussianActor, observation: Array, key: Array, best_of: int = 1) -> Array:  # noqa: ARG002
        return clip(policy(observation))

    def explore(self, policy: GaussianActor, observation: Array, key: Array) -> Array:
        mean = policy(observation)
        return clip(mean + jax.random.normal(key, mean.shape))

    def step(self, state: BCState, batch: Transition) -> tuple[BCState, Metrics]:
        """One update; nothing is drawn."""
        actor, metrics = descend(state.actor, self.learning_rate, self.actor_loss, batch)
        return BCState(actor), metrics

    def actor_loss(self, actor: GaussianActor, batch: Transition) -> tuple[Array, Metrics]:
        mean = actor(batch.observation)
        loss = -gaussian_log_density(mean, batch.action).mean()
        error = jax.lax.square(mean - batch.action).mean()
        return loss, {"actor_loss": loss, "squared_error": error}
