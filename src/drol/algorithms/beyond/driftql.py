"""DriftQL: a one-step actor whose loss pulls every candidate to the data action and pushes candidates apart.

    z_i ~ N(0, I),  c_i = clip f(s, z_i),  i = 1..N
    w_ij = softmax over j != i of -|c_i - c_j| / (tau sqrt(d_a)) or -|c_i - c_j|^2 / (2 tau^2 d_a)    (sibling_weights)
    V_i  = (a - c_i) - sum_j w_ij (c_j - c_i)                                                         (drift)
    L_actor = alpha mean_i |c_i - sg clip(c_i + V_i)|^2 / d_a  -  agg_j Q_j(s, clip f(s, z))          (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', clip f(s', z')))^2               (parts.critic_loss)

m = 1 - terminal (`batch.continues`). DROL has the same candidates, but only the nearest one learns.
Here every candidate has a target, and Q trains another draw.
Reference: "Drift Q-Learning", https://arxiv.org/abs/2606.00350.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.drol import Policy, State
from drol.algorithms.parts import (
    aggregate,
    best_action,
    clip,
    critic_loss,
    descend,
    polyak,
    q_scale,
    trainable,
)
from drol.algorithms.routing import candidate_diagnostics
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition


class Draws(eqx.Module):
    """All randomness of one update."""

    latent: Array  # z_i, [batch, N, action]
    q_latent: Array  # z of the action that maximises Q, [batch, action]
    next_latent: Array  # z', [batch, action]


class DriftQL(Algorithm):
    """A one-step policy whose draws drift to the data and away from each other, while Q moves one more draw.

    Paper: https://arxiv.org/abs/2606.00350.
    """

    alpha: float = hyperparameter(10.0, "alpha, weight of the drift against Q", minimum=0)
    num_candidates: int = hyperparameter(32, "N, candidates drawn for each state", minimum=2, maximum=4096)
    temperature: float = hyperparameter(0.2, "tau, how far candidates push each other apart", minimum=1e-6)
    kernel: str = hyperparameter("laplace", "how the push falls off with distance", choices=("laplace", "gaussian"))
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "min", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    actor_aggregation: str = hyperparameter(
        "mean", "agg, how the critics make one value in the actor loss", choices=("mean", "min")
    )
    normalise_q: bool = hyperparameter(False, "divide Q in the actor loss by its mean magnitude over the batch")
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for actor and critic", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of actor and critics", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        return State(trainable(actor), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        latent = jax.random.normal(key, (self.check_act(observation, best_of), policy.actor.action_size))
        actions = clip(policy.actor.candidates(observation, latent))  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def sampler(self, policy: Policy) -> Sampler:
        return latent_sampler(policy.actor, policy.critic, "normal")

    def draw(self, batch: Transition, key: Array) -> Draws:
        latent_key, q_key, next_key = jax.random.split(key, 3)
        batch_size, action_size = batch.action.shape
        return Draws(
            latent=jax.random.normal(latent_key, (batch_size, self.num_candidates, action_size)),
            q_latent=jax.random.normal(q_key, (batch_size, action_size)),
            next_latent=jax.random.normal(next_key, (batch_size, action_size)),
        )

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        actor_before, critic_before = state.actor.network, state.critic.network
        target = self.bellman_target(state.target_critic, actor_before, batch, draws.next_latent)
        actor, actor_metrics = descend(
            state.actor, self.learning_rate, self.actor_loss, critic_before, batch, draws.latent, draws.q_latent
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(actor, critic, target_critic), actor_metrics | critic_metrics

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, latent: Array, q_latent: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss: the drift of all candidates, and Q of another draw."""
        drift_loss = self.drift_loss(clip(actor.candidates(batch.observation, latent)), batch.action)
        action = clip(actor(batch.observation, q_latent))
        q = aggregate(critic(batch.observation, action), self.actor_aggregation)  # [batch]
        scale = q_scale(q) if self.normalise_q else 1.0
        loss = self.alpha * drift_loss - scale * q.mean()
        return loss, {"actor_loss": loss, "drift_loss": drift_loss, "actor_q": q.mean()}

    def drift_loss(self, candidates: Array, action: Array) -> Array:
        """Return the mean squared distance of candidates [batch, N, action] to their drifted positions, kept fixed."""
        drift = self.drift(jax.lax.stop_gradient(candidates), action)
        goal = clip(jax.lax.stop_gradient(candidates) + drift)
        return jnp.square(candidates - goal).mean()

    def drift(self, candidates: Array, action: Array) -> Array:
        """Return the drift of each candidate: to the data action, and away from the nearby candidates."""
        apart = candidates[:, None] - candidates[:, :, None]  # [batch, i, j, action], c_j - c_i
        away = (self.sibling_weights(apart)[..., None] * apart).sum(2)
        return action[:, None] - candidates - away

    def sibling_weights(self, apart: Array) -> Array:
        """Return the weight with which candidate j repels candidate i, [batch, i, j]; the weights sum to 1 over j."""
        squared = jnp.square(apart).sum(-1)
        if self.kernel == "gaussian":
            closeness = -squared / (2 * self.temperature**2 * apart.shape[-1])
        else:
            closeness = -jnp.sqrt(squared + 1e-12) / (self.temperature * math.sqrt(apart.shape[-1]))
        itself = jnp.eye(apart.shape[1], dtype=bool)
        return jax.nn.softmax(jnp.where(itself, -jnp.inf, closeness), axis=-1)

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_latent: Array
    ) -> Array:
        next_action = clip(actor(batch.next_observation, next_latent))
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        candidates = clip(state.actor.network.candidates(batch.observation, self.draw(batch, key).latent))
        return candidate_diagnostics(candidates, batch.action)
