"""BFN: a cloned flow, and the best of N of its samples by the critic, in the Bellman target and at test time.

    L_flow = |v(s, x_t, t) - (a - x_0)|^2 / d_a,  x_t = (1 - t) x_0 + t a                  (parts.flow_matching_loss)
    b(s)   = a_j*,  j* = argmax_{j <= N} mean_e Q_e(s, a_j),  a_j = F(s, x_j),  x_j ~ N(0, I)          (best_sample)
    L_Q    = mean_e (Q_e(s, a) - r - gamma m mean_e Qbar_e(s', b(s')))^2                   (parts.critic_loss)

F is the flow of v by Euler steps; m = 1 - terminal (`batch.continues`). The policy acts with b(s).
No loss moves the flow towards Q, so there is no weight of cloning against Q.
Reference: the baseline BFN of "Reinforcement Learning with Action Chunking", https://arxiv.org/abs/2507.07969.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    best_action,
    critic_loss,
    descend,
    flow_action,
    flow_matching_loss,
    polyak,
    trainable,
)
from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, flow_sampler
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the flow, and the critic that chooses among its samples."""

    flow: VectorField
    critic: QEnsemble


class State(eqx.Module):
    """The state of training."""

    flow: Trainable[VectorField]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.flow.network, self.critic.network)


class Draws(eqx.Module):
    """All randomness of one update."""

    flow_noise: Array  # x_0, [batch, action]
    flow_time: Array  # t, [batch, 1]
    next_noise: Array  # x_j at the next state, [batch, N, action]


class BFN(Algorithm):
    """A cloned flow whose samples the critic chooses among, when it learns and when it acts; no weight to tune.

    The paper that uses it as a baseline: https://arxiv.org/abs/2507.07969.
    """

    num_samples: int = hyperparameter(
        4,
        "N, flow samples; the best one is the action, in the Bellman target and at test",
        minimum=1,
        maximum=65536,
    )
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    flow_steps: int = hyperparameter(10, "M, Euler steps of the flow", minimum=1, maximum=1024)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for all networks", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {"laptop": SMALL}

    @property
    def default_best_of(self) -> int:
        return self.num_samples

    def init(self, key: Array, spec: Spec) -> State:
        flow_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        return State(trainable(flow), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        noise = jax.random.normal(key, (self.check_act(observation, best_of), policy.flow.action_size))
        return self.best_sample(policy.flow, policy.critic, observation, noise)

    def sampler(self, policy: Policy) -> Sampler:
        return flow_sampler(policy.flow, policy.critic, self.flow_steps)

    def draw(self, batch: Transition, key: Array) -> Draws:
        flow_key, time_key, next_key = jax.random.split(key, 3)
        batch_size, action_size = batch.action.shape
        return Draws(
            flow_noise=jax.random.normal(flow_key, (batch_size, action_size)),
            flow_time=jax.random.uniform(time_key, (batch_size, 1)),
            next_noise=jax.random.normal(next_key, (batch_size, self.num_samples, action_size)),
        )

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        target = self.bellman_target(state, batch, draws.next_noise)
        flow, flow_metrics = descend(
            state.flow, self.learning_rate, flow_matching_loss, batch, draws.flow_noise, draws.flow_time
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(state.critic.network, state.target_critic, self.target_rate)
        return State(flow, critic, target_critic), flow_metrics | critic_metrics

    def best_sample(self, flow: VectorField, critic: QEnsemble, observation: Array, noise: Array) -> Array:
        """Return the sample that the critic values most, for one observation and its noises [N, action]."""
        return best_action(critic, observation, flow_action(flow, observation, noise, self.flow_steps))

    def bellman_target(self, state: State, batch: Transition, next_noise: Array) -> Array:
        """Return y [batch]: the online critic chooses the next action, the target critic values it."""

        def choose(observation: Array, noise: Array) -> Array:
            return self.best_sample(state.flow.network, state.critic.network, observation, noise)

        next_action = jax.vmap(choose)(batch.next_observation, next_noise)
        next_q = state.target_critic(batch.next_observation, next_action).mean(0)
        return batch.reward + self.discount * batch.continues * next_q
