"""DROL as its paper prints it: training neither clips candidates nor normalises Q.

    z_k ~ Unif(ball of radius sqrt(d_a)),  c_k = f(s, z_k),  k* = argmin_k |c_k - a|^2            (route)
    L_actor = |c_k* - a|^2  -  alpha min_j Q_j(s, c_k*)                                           (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', f(s', z')))^2                      (parts.critic_loss)

The order is that of Algorithm 1: first the actor descends (line 5), then the updated actor draws the action of the
Bellman target (line 6), then the critics descend (line 7).

m = 1 - terminal (`batch.continues`).
It acts with `clip f(s, z)`. drol.py is the loss that the authors ran; docs/algorithms.md compares the two.

Reference: "Preserve Support, Not Correspondence: Dynamic Routing for Offline Reinforcement Learning",
https://arxiv.org/abs/2604.22229.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.drol import Policy, State
from drol.algorithms.parts import aggregate, best_action, clip, critic_loss, descend, polyak, trainable
from drol.algorithms.routing import Draws, candidate_diagnostics, draw_for_update, draw_latents, nearest_latent
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition


class DROLEquation(Algorithm):
    """DROL by the equation that its paper prints: squared norm minus alpha times raw Q, without a clip.

    Paper: https://arxiv.org/abs/2604.22229.
    """

    alpha: float = hyperparameter(1.0, "alpha, weight of Q against the squared norm", minimum=0)
    num_candidates: int = hyperparameter(16, "K, candidates drawn for each state", minimum=1, maximum=65536)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    actor_aggregation: str = hyperparameter(
        "min", "how the critics make one value in the actor loss", choices=("mean", "min")
    )
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for actor and critic", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of actor and critics", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {"laptop": {**SMALL, "num_candidates": 8, "q_aggregation": "min", "alpha": 2.0}}

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
        """Do one update with given draws; the Bellman target uses the actor that was just updated."""
        critic_before = state.critic.network
        winner = self.route(state.actor.network, batch, draws.latent)
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.actor_loss, critic_before, batch, winner)
        target = self.bellman_target(state.target_critic, actor.network, batch, draws.next_latent)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(actor, critic, target_critic), actor_metrics | critic_metrics

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> Array:
        """Return the latent of the candidate nearest to each data action; K adds only forward passes, no gradients."""
        return nearest_latent(actor.candidates(batch.observation, latent), latent, batch.action)

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss of the winner alone (squared norm and Q), which is computed again with a gradient."""
        action = actor(batch.observation, winner)  # [batch, action]
        squared_norm = jnp.square(action - batch.action).sum(-1).mean()
        q = aggregate(critic(batch.observation, action), self.actor_aggregation)  # [batch]
        loss = squared_norm - self.alpha * q.mean()
        return loss, {"actor_loss": loss, "routed_squared_norm": squared_norm, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_latent: Array
    ) -> Array:
        next_action = actor(batch.next_observation, next_latent)
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        """Return the diagnostics of clipped candidates, because the policy acts with clipped actions."""
        latent = self.draw(batch, key).latent
        candidates = clip(state.actor.network.candidates(batch.observation, latent))  # [batch, K, action]
        return candidate_diagnostics(candidates, batch.action)
