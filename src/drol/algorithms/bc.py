"""BC: behaviour cloning with a Gaussian policy of standard deviation 1.

    L_actor = -log N(a; mu(s), I)                                                      (actor_loss)

It acts with the mean, clipped. Reference: the baseline of "Flow Q-Learning", https://arxiv.org/abs/2502.02538.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import Trainable, clip, descend, gaussian_log_density, trainable
from drol.networks.actors import GaussianActor
from drol.networks.sampler import Sampler, mean_sampler
from drol.transition import Metrics, Spec, Transition


class State(eqx.Module):
    """The state of training."""

    actor: Trainable[GaussianActor]

    @property
    def policy(self) -> GaussianActor:
        return self.actor.network


class BC(Algorithm):
    """The mean action of the data: fast, and wrong where the data has several ways.

    The paper that uses it as a baseline: https://arxiv.org/abs/2502.02538.
    """

    learning_rate: float = hyperparameter(3e-4, "step size of Adam", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of the actor", minimum=1, maximum=65536
    )

    draws_actions: ClassVar = False
    presets: ClassVar = {"laptop": {name: SMALL[name] for name in ("hidden_sizes", "learning_rate")}}

    def init(self, key: Array, spec: Spec) -> State:
        return State(trainable(GaussianActor(key, spec, self.hidden_sizes)))

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:  # noqa: ARG002
        return self.step(state, batch)

    def act(self, policy: GaussianActor, observation: Array, key: Array, best_of: int | None = None) -> Array:  # noqa: ARG002
        self.check_act(observation, best_of)
        return clip(policy(observation))

    def sampler(self, policy: GaussianActor) -> Sampler:
        return mean_sampler(policy)

    def explore(self, policy: GaussianActor, observation: Array, key: Array) -> Array:
        mean = policy(observation)
        return clip(mean + jax.random.normal(key, mean.shape))

    def step(self, state: State, batch: Transition) -> tuple[State, Metrics]:
        """Do one update without random numbers."""
        actor, metrics = descend(state.actor, self.learning_rate, self.actor_loss, batch)
        return State(actor), metrics

    def actor_loss(self, actor: GaussianActor, batch: Transition) -> tuple[Array, Metrics]:
        mean = actor(batch.observation)
        loss = -gaussian_log_density(mean, batch.action).mean()
        squared_error = jnp.square(mean - batch.action).mean()
        return loss, {"actor_loss": loss, "squared_error": squared_error}
