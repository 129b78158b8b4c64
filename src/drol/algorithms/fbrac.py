"""FBRAC: a flow policy that maximises Q through all of its Euler steps and stays near the data by flow matching.

    L_flow  = |v(s, x_t, t) - (a - x_0)|^2 / d_a,  x_t = (1 - t) x_0 + t a             (parts.flow_matching_error)
    L_actor = alpha L_flow  -  mean_j Q_j(s, F(s, z))                                  (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', F(s', z')))^2           (parts.critic_loss)

F is the flow of v by Euler steps, clipped; m = 1 - terminal (`batch.continues`).
Reference: the baseline of "Flow Q-Learning", https://arxiv.org/abs/2502.02538.
"""

from typing import ClassVar

import equinox as eqx
import jax
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
    q_scale,
    trainable,
)
from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, flow_sampler
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the flow, and the critic that chooses among several actions."""

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


class FBRAC(Algorithm):
    """A flow policy trained by back-propagation through its sampler.

    The paper that uses it as a baseline: https://arxiv.org/abs/2502.02538.
    """

    alpha: float = hyperparameter(10.0, "alpha, weight of flow matching against Q", minimum=0)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    normalise_q: bool = hyperparameter(False, "divide Q in the actor loss by its mean magnitude over the batch")
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

    def init(self, key: Array, spec: Spec) -> State:
        flow_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        return State(trainable(flow), trainable(critic), critic)

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
        flow, flow_metrics = descend(state.flow, self.learning_rate, self.actor_loss, critic_before, batch, draws)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(flow, critic, target_critic), flow_metrics | critic_metrics

    def actor_loss(
        self, flow: VectorField, critic: QEnsemble, batch: Transition, draws: FlowDraws
    ) -> tuple[Array, Metrics]:
        """Return the loss: flow matching, and Q with a gradient through every Euler step and the clip."""
        flow_loss = flow_matching_error(flow, batch, draws.flow_noise, draws.flow_time).mean()
        action = flow_action(flow, batch.observation, draws.noise, self.flow_steps)
        q = critic(batch.observation, action).mean(0)  # [batch]
        scale = q_scale(q) if self.normalise_q else 1.0
        loss = self.alpha * flow_loss - scale * q.mean()
        return loss, {"actor_loss": loss, "flow_loss": flow_loss, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, flow: VectorField, batch: Transition, next_noise: Array
    ) -> Array:
        next_action = flow_action(flow, batch.next_observation, next_noise, self.flow_steps)
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]
