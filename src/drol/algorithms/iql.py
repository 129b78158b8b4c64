"""IQL: values by expectile regression inside the data, then advantage-weighted cloning.

    L_V  = w (q - V(s))^2,  q = min_j Qbar_j(s, a),  w = kappa if q >= V else 1 - kappa    (parts.expectile_loss)
    L_Q  = sum_j (Q_j(s, a) - r - gamma m V(s'))^2                                         (parts.summed_critic_loss)
    L_pi = -min(exp(alpha (min_j Q_j(s, a) - V(s))), 100) log N(a; mu(s), I)               (actor_loss)

m = 1 - terminal (`batch.continues`). It acts with the mean, clipped.
Reference: "Offline Reinforcement Learning with Implicit Q-Learning", https://arxiv.org/abs/2110.06169.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    clip,
    descend,
    expectile_loss,
    gaussian_log_density,
    polyak,
    summed_critic_loss,
    trainable,
)
from drol.networks.actors import GaussianActor
from drol.networks.critics import QEnsemble, ValueFunction
from drol.networks.sampler import Sampler, mean_sampler
from drol.transition import Metrics, Spec, Transition


class State(eqx.Module):
    """The state of training."""

    actor: Trainable[GaussianActor]
    value: Trainable[ValueFunction]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> GaussianActor:
        return self.actor.network


class IQL(Algorithm):
    """A Gaussian policy that clones the better actions of the data; no action outside the data is ever valued.

    Paper: https://arxiv.org/abs/2110.06169.
    """

    alpha: float = hyperparameter(10.0, "alpha, inverse temperature of the advantage weights", minimum=0)
    expectile: float = hyperparameter(0.9, "kappa, expectile of the value function", minimum=0, maximum=1)
    largest_weight: float = hyperparameter(100.0, "cap of the advantage weights", minimum=0)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for all networks", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (),
        "widths of the hidden layers of critics and value; as hidden_sizes if none are given",
        minimum=1,
        maximum=65536,
    )

    draws_actions: ClassVar = False
    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, value_key, critic_key = jax.random.split(key, 3)
        critic_sizes = self.critic_hidden_sizes or self.hidden_sizes
        critic = QEnsemble(critic_key, spec, critic_sizes)
        value = ValueFunction(value_key, spec, critic_sizes)
        actor = GaussianActor(actor_key, spec, self.hidden_sizes)
        return State(trainable(actor), trainable(value), trainable(critic), critic)

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
        """Do one update without random numbers; all losses use the networks from before it."""
        value_before, critic_before = state.value.network, state.critic.network
        target = batch.reward + self.discount * batch.continues * value_before(batch.next_observation)
        value, value_metrics = descend(
            state.value, self.learning_rate, expectile_loss, state.target_critic, batch, self.expectile
        )
        actor, actor_metrics = descend(
            state.actor, self.learning_rate, self.actor_loss, critic_before, value_before, batch
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, summed_critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(actor, value, critic, target_critic), value_metrics | actor_metrics | critic_metrics

    def actor_loss(
        self, actor: GaussianActor, critic: QEnsemble, value: ValueFunction, batch: Transition
    ) -> tuple[Array, Metrics]:
        advantage = critic(batch.observation, batch.action).min(0) - value(batch.observation)
        weight = jnp.minimum(jnp.exp(self.alpha * advantage), self.largest_weight)
        loss = -(weight * gaussian_log_density(actor(batch.observation), batch.action)).mean()
        return loss, {"actor_loss": loss, "advantage": advantage.mean(), "weight": weight.mean()}
