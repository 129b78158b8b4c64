"""DROL: a one-step actor that routes each data action to its nearest candidate.

    z_k ~ Unif(ball of radius sqrt(d_a)),  c_k = clip f(s, z_k),  k* = argmin_k |c_k - a|^2       (route)
    L_actor = bc_weight |c_k* - a|^2 / d_a  -  q_weight min_j Q_j(s, c_k*) / E|min_j Q_j|         (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', clip f(s', z')))^2                 (parts.critic_loss)

m = 1 - terminal (`batch.continues`).
This is the loss that the authors ran; drol_equation.py is the loss that the paper prints. docs/algorithms.md compares
them.

Reference: "Preserve Support, Not Correspondence: Dynamic Routing for Offline Reinforcement Learning",
https://arxiv.org/abs/2604.22229.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    aggregate,
    best_action,
    clip,
    critic_loss,
    descend,
    polyak,
    q_scale,
    trainable,
)
from drol.algorithms.routing import (
    Draws,
    candidate_diagnostics,
    draw_for_update,
    draw_latents,
    nearest_latent,
)
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition


class Policy(eqx.Module):
    """The networks that `act` needs: the actor, and the critic that chooses among several actions."""

    actor: LatentActor
    critic: QEnsemble


class State(eqx.Module):
    """The state of training."""

    actor: Trainable[LatentActor]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.actor.network, self.critic.network)


class DROL(Algorithm):
    """A one-step policy that can keep the modes of the data: each action trains only its nearest candidate.

    Paper: https://arxiv.org/abs/2604.22229.
    """

    bc_weight: float = hyperparameter(
        1.0, "weight of behaviour cloning against a normalised Q; the alpha of the paper's tables", minimum=0
    )
    num_candidates: int = hyperparameter(16, "K, candidates drawn for each state", minimum=1, maximum=65536)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    actor_aggregation: str = hyperparameter(
        "min", "how the critics make one value in the actor loss", choices=("mean", "min")
    )
    normalise_q: bool = hyperparameter(True, "divide Q in the actor loss by its mean magnitude over the batch")
    q_weight: float = hyperparameter(1.0, "weight of Q in the actor loss", minimum=0)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for actor and critic", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of actor and critics", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {
        "laptop": {**SMALL, "num_candidates": 64, "q_aggregation": "min", "bc_weight": 0.03, "discount": 0.995}
    }
    removed: ClassVar = {"target_candidates": 1, "best_of_aggregation": "mean", "densest": 0}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        return State(trainable(actor), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        latent = draw_latents(key, (self.check_act(observation, best_of), policy.actor.action_size))
        actions = clip(policy.actor.candidates(observation, latent))  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def sampler(self, policy: Policy) -> Sampler:
        return latent_sampler(policy.actor, policy.critic, "ball")

    def draw(self, batch: Transition, key: Array) -> Draws:
        return draw_for_update(batch, self.num_candidates, key)

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        actor_before, critic_before = state.actor.network, state.critic.network
        winner = self.route(actor_before, batch, draws.latent)
        target = self.bellman_target(state.target_critic, actor_before, batch, draws.next_latent)
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.actor_loss, critic_before, batch, winner)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(actor, critic, target_critic), actor_metrics | critic_metrics

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> Array:
        """Return the latent of the candidate nearest to each data action; K adds only forward passes, no gradients."""
        candidates = clip(actor.candidates(batch.observation, latent))  # [batch, K, action]
        return nearest_latent(candidates, latent, batch.action)

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss of the winner alone (cloning and Q), which is computed again with a gradient."""
        action = clip(actor(batch.observation, winner))  # [batch, action]
        bc_loss = jnp.square(action - batch.action).mean()
        q = aggregate(critic(batch.observation, action), self.actor_aggregation)  # [batch]
        scale = q_scale(q) if self.normalise_q else 1.0
        loss = self.bc_weight * bc_loss - self.q_weight * scale * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": bc_loss, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_latent: Array
    ) -> Array:
        next_action = clip(actor(batch.next_observation, next_latent))
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        latent = self.draw(batch, key).latent
        candidates = clip(state.actor.network.candidates(batch.observation, latent))  # [batch, K, action]
        return candidate_diagnostics(candidates, batch.action)
