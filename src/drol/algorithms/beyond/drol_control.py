"""DROL with another choice of the winner: the controls that show whether dynamic routing matters.

    z_k ~ Unif(ball of radius sqrt(d_a)),  c_k = clip f(s, z_k)                                   (draw)
    nearest: k* = argmin_k |c_k - a|^2                                                            (choose_winner)
    lagged:  k* = argmin_k |clip fbar(s, z_k) - a|^2,  fbar <- h f + (1 - h) fbar,  h = 1 - 0.5^(1 / 5,000)
    random:  k* uniform among 1, ..., K
    L_actor = bc_weight |c_k* - a|^2 / d_a  -  q_weight min_j Q_j(s, c_k*) / E|min_j Q_j|         (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', clip f(s', z')))^2                 (parts.critic_loss)

(s, a, r, s') is a transition of the data and d_a the size of its action. f is the actor, fbar its lagged copy, Q_j are
the critics and Qbar_j their slow targets. z_k and z' are latents, gamma is the discount, agg is `q_aggregation`, and
m = 1 - terminal (`batch.continues`).

"nearest" is bit-identical to DROL (drol.py). "lagged" freezes the routing: a latent keeps its data actions for
thousands of updates, however far Q has moved its candidate. "random" does not route. K, losses, data and draws are the
same.
Reference: DROL, https://arxiv.org/abs/2604.22229; the controls are ours.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.drol import Policy
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
from drol.algorithms.routing import Draws, candidate_diagnostics, draw_for_update, draw_latents, nearest_latent
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition

HALF_LIFE = 5_000  # updates in which the lagged copy covers half of its distance to the actor
LAG_RATE = 1 - 0.5 ** (1 / HALF_LIFE)


class State(eqx.Module):
    """The state of training."""

    actor: Trainable[LatentActor]
    lagged: LatentActor | None  # None unless it chooses the winner
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.actor.network, self.critic.network)


class DROLControl(Algorithm):
    """DROL whose winner is chosen by a lagged copy of the actor, or at random: a control, not a method to use.

    Paper of DROL: https://arxiv.org/abs/2604.22229; docs/results.md has the results of the controls.
    """

    winner: str = hyperparameter(
        "nearest",
        "who chooses the winner: the actor (DROL), a lagged copy of it (frozen routing), or chance",
        choices=("nearest", "lagged", "random"),
    )
    bc_weight: float = hyperparameter(
        1.0, "weight of behaviour cloning against a normalised Q; the alpha of the paper's tables", minimum=0
    )
    num_candidates: int = hyperparameter(16, "K, candidates drawn for each state", minimum=1, maximum=65536)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
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

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        return State(trainable(actor), actor if self.winner == "lagged" else None, trainable(critic), critic)

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
        winner = self.choose_winner(state, batch, draws.latent)
        target = self.bellman_target(state.target_critic, actor_before, batch, draws.next_latent)
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.actor_loss, critic_before, batch, winner)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        lagged = None if state.lagged is None else polyak(actor.network, state.lagged, LAG_RATE)
        return State(actor, lagged, critic, target_critic), actor_metrics | critic_metrics

    def choose_winner(self, state: State, batch: Transition, latent: Array) -> Array:
        """Return the latent [batch, action] that each data action trains, of K latents [batch, K, action]."""
        if self.winner == "random":
            return latent[:, 0]  # the K latents are independent, so the first is a random choice
        actor = state.actor.network if state.lagged is None else state.lagged
        return nearest_latent(clip(actor.candidates(batch.observation, latent)), latent, batch.action)

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        """Return the loss of the winner alone (cloning and Q), which is computed again with a gradient."""
        action = clip(actor(batch.observation, winner))  # [batch, action]
        bc_loss = jnp.square(action - batch.action).mean()
        q = aggregate(critic(batch.observation, action), "min")  # [batch]
        loss = self.bc_weight * bc_loss - self.q_weight * q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": bc_loss, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_latent: Array
    ) -> Array:
        next_action = clip(actor(batch.next_observation, next_latent))
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        """Return the same diagnostics as DROL, by the nearest candidate, for every rule."""
        latent = self.draw(batch, key).latent
        candidates = clip(state.actor.network.candidates(batch.observation, latent))  # [batch, K, action]
        return candidate_diagnostics(candidates, batch.action)
