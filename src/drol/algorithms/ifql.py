"""IFQL: values by expectile regression, a cloned flow, and the best of N flow samples at test time.

    L_V    = w (q - V(s))^2,  q = min_j Qbar_j(s, a),  w = kappa if q >= V else 1 - kappa  (parts.expectile_loss)
    L_Q    = sum_j (Q_j(s, a) - r - gamma m V(s'))^2                                       (parts.summed_critic_loss)
    L_flow = |v(s, x_t, t) - (a - x_0)|^2 / d_a                                            (parts.flow_matching_loss)

m = 1 - terminal (`batch.continues`). It acts with the best of N flow samples by `min_j Q_j`.
Reference: the baseline of "Flow Q-Learning", https://arxiv.org/abs/2502.02538.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    best_action,
    descend,
    expectile_loss,
    flow_action,
    flow_matching_loss,
    polyak,
    summed_critic_loss,
    trainable,
)
from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble, ValueFunction
from drol.networks.sampler import Sampler, flow_sampler
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the flow, and the critic that chooses among its samples."""

    flow: VectorField
    critic: QEnsemble


class State(eqx.Module):
    """The state of training."""

    flow: Trainable[VectorField]
    value: Trainable[ValueFunction]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.flow.network, self.critic.network)


class Draws(eqx.Module):
    """All randomness of one update."""

    flow_noise: Array  # x_0, [batch, action]
    flow_time: Array  # t, [batch, 1]


class IFQL(Algorithm):
    """A cloned flow whose samples are chosen by an implicit critic when it acts.

    The paper that uses it as a baseline: https://arxiv.org/abs/2502.02538.
    """

    num_samples: int = hyperparameter(32, "N, flow samples; the best one is the action", minimum=1, maximum=65536)
    expectile: float = hyperparameter(0.9, "kappa, expectile of the value function", minimum=0, maximum=1)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    flow_steps: int = hyperparameter(10, "M, Euler steps of the flow", minimum=1, maximum=1024)
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

    presets: ClassVar = {"laptop": SMALL}

    @property
    def default_best_of(self) -> int:
        return self.num_samples

    def init(self, key: Array, spec: Spec) -> State:
        flow_key, value_key, critic_key = jax.random.split(key, 3)
        critic_sizes = self.critic_hidden_sizes or self.hidden_sizes
        critic = QEnsemble(critic_key, spec, critic_sizes)
        value = ValueFunction(value_key, spec, critic_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        return State(trainable(flow), trainable(value), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        noise = jax.random.normal(key, (self.check_act(observation, best_of), policy.flow.action_size))
        actions = flow_action(policy.flow, observation, noise, self.flow_steps)  # [best_of, action]
        return best_action(policy.critic, observation, actions, how="min")

    def sampler(self, policy: Policy) -> Sampler:
        return flow_sampler(policy.flow, policy.critic, self.flow_steps, aggregation="min")

    def draw(self, batch: Transition, key: Array) -> Draws:
        flow_key, time_key = jax.random.split(key)
        return Draws(
            flow_noise=jax.random.normal(flow_key, batch.action.shape),
            flow_time=jax.random.uniform(time_key, (len(batch.action), 1)),
        )

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        critic_before = state.critic.network
        target = batch.reward + self.discount * batch.continues * state.value.network(batch.next_observation)
        value, value_metrics = descend(
            state.value, self.learning_rate, expectile_loss, state.target_critic, batch, self.expectile
        )
        flow, flow_metrics = descend(
            state.flow, self.learning_rate, flow_matching_loss, batch, draws.flow_noise, draws.flow_time
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, summed_critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(flow, value, critic, target_critic), value_metrics | flow_metrics | critic_metrics
