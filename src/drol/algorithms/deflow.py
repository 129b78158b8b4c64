"""DeFlow: a cloned flow whose samples a small network refines towards higher Q, within an allowed distance.

    L_flow  = |v(s, x_t, t) - (a - x_0)|^2 / d_a                                       (parts.flow_matching_loss)
    b = F(s, z),  delta = g(s, b),  D = E |delta|^2 / d_a
    L_g     = alpha D  -  mean_j Q_j(s, clip(b + delta)) / E|q|,  alpha = exp(log_alpha)  (refine_loss)
    L_alpha = -log_alpha (D - target_divergence)                                       (multiplier_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', pi(s')))^2              (parts.critic_loss)

F is the flow of v by Euler steps, pi its refined sample, both clipped; m = 1 - terminal (`batch.continues`). Reference:
"DeFlow: Decoupling Manifold Modeling and Value Maximization for Offline Policy Extraction",
https://arxiv.org/abs/2601.10471, and its released code.
"""

from dataclasses import replace
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
    clip,
    critic_loss,
    descend,
    draw_flow,
    flow_action,
    flow_matching_loss,
    polyak,
    q_scale,
    trainable,
)
from drol.networks.actors import LatentActor, VectorField
from drol.networks.critics import QEnsemble
from drol.networks.sampler import CLIP, Call, Sampler, flow_sampler, network_of
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the flow, its refinement, and the critic that chooses among several actions."""

    flow: VectorField
    refinement: LatentActor  # g(s, b); its input is the flow's action instead of a latent
    critic: QEnsemble


class State(eqx.Module):
    """The state of training."""

    flow: Trainable[VectorField]
    refinement: Trainable[LatentActor]
    log_alpha: Trainable[Array]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.flow.network, self.refinement.network, self.critic.network)


class DeFlow(Algorithm):
    """A flow and a refinement of its samples, held to a budget by a learned multiplier.

    Paper: https://arxiv.org/abs/2601.10471.
    """

    target_divergence: float = hyperparameter(0.01, "delta, allowed mean squared refinement", minimum=0)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    normalise_q: bool = hyperparameter(True, "divide Q in the actor loss by its mean magnitude over the batch")
    initial_log_alpha: float = hyperparameter(
        1.0, "log of the multiplier alpha before training", minimum=-20, maximum=20
    )
    flow_steps: int = hyperparameter(10, "M, Euler steps of the flow", minimum=1, maximum=1024)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(
        3e-4, "step size of Adam, for all networks and the multiplier", minimum=1e-12, maximum=1
    )
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        flow_key, refinement_key, critic_key = jax.random.split(key, 3)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        flow = VectorField(flow_key, spec, self.hidden_sizes)
        refinement = LatentActor(refinement_key, spec, self.hidden_sizes)
        log_alpha = jnp.asarray(self.initial_log_alpha, jnp.float32)
        return State(trainable(flow), trainable(refinement), trainable(log_alpha), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        noise = jax.random.normal(key, (self.check_act(observation, best_of), policy.flow.action_size))
        actions = self.refined_action(policy.flow, policy.refinement, observation, noise)  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def sampler(self, policy: Policy) -> Sampler:
        flow = flow_sampler(policy.flow, policy.critic, self.flow_steps)
        networks = {**flow.networks, "refinement": network_of(policy.refinement)}
        return replace(flow, steps=(*flow.steps, Call("refinement", scale=1.0), CLIP), networks=networks)

    def draw(self, batch: Transition, key: Array) -> FlowDraws:
        return draw_flow(batch, key)

    def step(self, state: State, batch: Transition, draws: FlowDraws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        flow_before, refinement_before = state.flow.network, state.refinement.network
        critic_before, log_alpha_before = state.critic.network, state.log_alpha.network
        base = flow_action(flow_before, batch.observation, draws.noise, self.flow_steps)
        target = self.bellman_target(state.target_critic, flow_before, refinement_before, batch, draws.next_noise)
        flow, flow_metrics = descend(
            state.flow, self.learning_rate, flow_matching_loss, batch, draws.flow_noise, draws.flow_time
        )
        refinement, refine_metrics = descend(
            state.refinement, self.learning_rate, self.refine_loss, critic_before, batch, base, log_alpha_before
        )
        log_alpha, alpha_metrics = descend(
            state.log_alpha, self.learning_rate, self.multiplier_loss, refine_metrics["divergence"]
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        metrics = flow_metrics | refine_metrics | alpha_metrics | critic_metrics
        return State(flow, refinement, log_alpha, critic, target_critic), metrics

    def refine_loss(
        self, refinement: LatentActor, critic: QEnsemble, batch: Transition, base: Array, log_alpha: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss: the size of the refinement, weighted by the multiplier, minus Q of the refined action."""
        delta = refinement(batch.observation, base)
        divergence = jnp.square(delta).mean()
        q = critic(batch.observation, clip(base + delta)).mean(0)  # [batch]
        scale = q_scale(q) if self.normalise_q else 1.0
        loss = jnp.exp(log_alpha) * divergence - scale * q.mean()
        return loss, {"actor_loss": loss, "divergence": divergence, "actor_q": q.mean()}

    def multiplier_loss(self, log_alpha: Array, divergence: Array) -> tuple[Array, Metrics]:
        """Return the loss of the multiplier, which rises while the refinement is larger than allowed."""
        loss = -log_alpha * (divergence - self.target_divergence)
        return loss, {"alpha": jnp.exp(log_alpha), "alpha_loss": loss}

    def bellman_target(
        self,
        target_critic: QEnsemble,
        flow: VectorField,
        refinement: LatentActor,
        batch: Transition,
        next_noise: Array,
    ) -> Array:
        next_action = self.refined_action(flow, refinement, batch.next_observation, next_noise)
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def refined_action(self, flow: VectorField, refinement: LatentActor, observation: Array, noise: Array) -> Array:
        base = flow_action(flow, observation, noise, self.flow_steps)
        return clip(base + refinement(observation, base))
