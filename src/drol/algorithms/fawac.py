"""FAWAC: a flow policy cloned with advantage weights.

    L_actor = w |v(s, x_t, t) - (a - x_0)|^2 / d_a,  w = min(exp(alpha (mean_j Q_j(s, a) - V(s))), 100)  (actor_loss)
    L_V     = mean_j (V(s) - Qbar_j(s, a))^2                                                            (value_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', F(s', z')))^2                     (parts.critic_loss)

F is the flow of v by Euler steps, clipped; m = 1 - terminal (`batch.continues`).
The paper that names this baseline does not define V. Its only public form fits a network to the target critics at data
actions; `baseline="policy"` is AWAC's own `V(s) = mean_j Q_j(s, F(s, z))`, without a value network.
Reference: the baseline of "Flow Q-Learning", https://arxiv.org/abs/2502.02538.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    FlowDraws,
    Trainable,
    aggregate,
    best_action,
    critic_loss,
    descend,
    draw_flow,
    flow_action,
    flow_matching_error,
    polyak,
    trainable,
)
from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble, ValueFunction
from drol.networks.sampler import Sampler, flow_sampler
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the flow, and the critic that chooses among several actions."""

    flow: VectorField
    critic: QEnsemble


class State(eqx.Module):
    """The state of training."""

    flow: Trainable[VectorField]
    value: Trainable[ValueFunction] | None  # None if `baseline` is "policy"
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.flow.network, self.critic.network)


class FAWAC(Algorithm):
    """A flow policy that clones the better actions of the data more.

    The paper that uses it as a baseline: https://arxiv.org/abs/2502.02538.
    """

    alpha: float = hyperparameter(3.0, "alpha, inverse temperature of the advantage weights", minimum=0)
    largest_weight: float = hyperparameter(100.0, "cap of the advantage weights", minimum=0)
    baseline: str = hyperparameter(
        "network", "V(s) of the advantage: a network, or the critics at a policy action", choices=("network", "policy")
    )
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
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

    def init(self, key: Array, spec: Spec) -> State:
        flow_key, value_key, critic_key = jax.random.split(key, 3)
        critic_sizes = self.critic_hidden_sizes or self.hidden_sizes
        critic = QEnsemble(critic_key, spec, critic_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        value = ValueFunction(value_key, spec, critic_sizes) if self.baseline == "network" else None
        return State(trainable(flow), value and trainable(value), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        noise = jax.random.normal(key, (self.check_act(observation, best_of), policy.flow.action_size))
        actions = flow_action(policy.flow, observation, noise, self.flow_steps)  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def sampler(self, policy: Policy) -> Sampler:
        return flow_sampler(policy.flow, policy.critic, self.flow_steps)

    def draw(self, batch: Transition, key: Array) -> FlowDraws:
        return draw_flow(batch, key)

    def step(self, state: State, batch: Transition, draws: FlowDraws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        flow_before, critic_before = state.flow.network, state.critic.network
        target = self.bellman_target(state.target_critic, flow_before, batch, draws.next_noise)
        weight = self.weight(state, batch, draws.noise)
        flow, flow_metrics = descend(state.flow, self.learning_rate, self.actor_loss, batch, draws, weight)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        value, metrics = state.value, flow_metrics | critic_metrics
        if value is not None:
            value, value_metrics = descend(value, self.learning_rate, self.value_loss, state.target_critic, batch)
            metrics |= value_metrics
        return State(flow, value, critic, target_critic), metrics

    def weight(self, state: State, batch: Transition, noise: Array) -> Array:
        """Return the weight [batch] of each data action."""
        critic = state.critic.network
        if state.value is None:
            policy_action = flow_action(state.flow.network, batch.observation, noise, self.flow_steps)
            value = critic(batch.observation, policy_action).mean(0)
        else:
            value = state.value.network(batch.observation)
        advantage = critic(batch.observation, batch.action).mean(0) - value
        return jnp.minimum(jnp.exp(self.alpha * advantage), self.largest_weight)

    def actor_loss(
        self, flow: VectorField, batch: Transition, draws: FlowDraws, weight: Array
    ) -> tuple[Array, Metrics]:
        error = flow_matching_error(flow, batch, draws.flow_noise, draws.flow_time).mean(-1)  # [batch]
        loss = (weight * error).mean()
        return loss, {"actor_loss": loss, "flow_loss": error.mean(), "weight": weight.mean()}

    def value_loss(self, value: ValueFunction, target_critic: QEnsemble, batch: Transition) -> tuple[Array, Metrics]:
        v = value(batch.observation)
        loss = jnp.square(v - target_critic(batch.observation, batch.action)).mean()
        return loss, {"value_loss": loss, "value": v.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, flow: VectorField, batch: Transition, next_noise: Array
    ) -> Array:
        next_action = flow_action(flow, batch.next_observation, next_noise, self.flow_steps)
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]
