"""GFP: FQL with a flow that clones data actions with weights: Q weights them against the actions of the actor.

    g       = sigmoid(lambda (Qbar(s, a) - Qbar(s, clip mu(s, z))) / eta),  lambda = 1 / E|Q|      (guidance)
    L_flow  = g |v(s, x_t, t) - (a - x_0)|^2 / d_a,  x_t = (1 - t) x_0 + t a                       (flow_loss)
    L_actor = alpha |mu(s, z) - F(s, z)|^2 / d_a  -  lambda Q(s, clip mu(s, z)),  Q = agg_j Q_j    (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', clip mu(s', z')))^2                 (parts.critic_loss)

F is the flow of v by Euler steps; m = 1 - terminal (`batch.continues`). Reference: "Guided Flow Policy: Learning from
High-Value Actions in Offline Reinforcement Learning", https://arxiv.org/abs/2512.03973.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.fql import Policy, State
from drol.algorithms.parts import (
    FlowDraws,
    aggregate,
    best_action,
    clip,
    critic_loss,
    descend,
    draw_flow,
    flow_action,
    flow_matching_error,
    polyak,
    q_scale,
    trainable,
)
from drol.networks.actors import LatentActor, VectorField
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition


class GFP(Algorithm):
    """A one-step policy that imitates a flow of the better data actions, latent by latent, and climbs Q.

    Paper: https://arxiv.org/abs/2512.03973.
    """

    alpha: float = hyperparameter(10.0, "alpha, weight of distillation against Q", minimum=0)
    temperature: float = hyperparameter(0.001, "eta, how sharply better data actions are preferred", minimum=1e-9)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter("mean", "agg, how the critics make one value", choices=("mean", "min"))
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
        flow_key, actor_key, critic_key = jax.random.split(key, 3)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        return State(trainable(flow), trainable(actor), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        latent = jax.random.normal(key, (self.check_act(observation, best_of), policy.actor.action_size))
        actions = clip(policy.actor.candidates(observation, latent))  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def sampler(self, policy: Policy) -> Sampler:
        return latent_sampler(policy.actor, policy.critic, "normal")

    def draw(self, batch: Transition, key: Array) -> FlowDraws:
        return draw_flow(batch, key)

    def step(self, state: State, batch: Transition, draws: FlowDraws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        flow_before, actor_before, critic_before = state.flow.network, state.actor.network, state.critic.network
        teacher = flow_action(flow_before, batch.observation, draws.noise, self.flow_steps)
        guidance = self.guidance(actor_before, critic_before, state.target_critic, batch, draws.noise)
        target = self.bellman_target(state.target_critic, actor_before, batch, draws.next_noise)
        flow, flow_metrics = descend(state.flow, self.learning_rate, self.flow_loss, batch, draws, guidance)
        actor, actor_metrics = descend(
            state.actor, self.learning_rate, self.actor_loss, critic_before, batch, draws.noise, teacher
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(flow, actor, critic, target_critic), flow_metrics | actor_metrics | critic_metrics

    def guidance(
        self, actor: LatentActor, critic: QEnsemble, target_critic: QEnsemble, batch: Transition, noise: Array
    ) -> Array:
        """Return the weight [batch] of each data action: above 1/2 if its Q exceeds Q of the actor's action."""
        action = clip(actor(batch.observation, noise))
        scale = q_scale(aggregate(critic(batch.observation, action), self.q_aggregation))
        own = aggregate(target_critic(batch.observation, action), self.q_aggregation)
        data = aggregate(target_critic(batch.observation, batch.action), self.q_aggregation)
        return jax.nn.sigmoid(scale * (data - own) / self.temperature)

    def flow_loss(
        self, field: VectorField, batch: Transition, draws: FlowDraws, guidance: Array
    ) -> tuple[Array, Metrics]:
        """Return the weighted flow-matching loss of the data actions."""
        error = flow_matching_error(field, batch, draws.flow_noise, draws.flow_time).mean(-1)  # [batch]
        loss = (guidance * error).mean()
        return loss, {"flow_loss": loss, "guidance": guidance.mean()}

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, noise: Array, teacher: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss: distillation of the unclipped output, and normalised Q of the clipped output."""
        action = actor(batch.observation, noise)
        distill_loss = jnp.square(action - teacher).mean()
        q = aggregate(critic(batch.observation, clip(action)), self.q_aggregation)  # [batch]
        loss = self.alpha * distill_loss - q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "distill_loss": distill_loss, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_noise: Array
    ) -> Array:
        next_action = clip(actor(batch.next_observation, next_noise))
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]
