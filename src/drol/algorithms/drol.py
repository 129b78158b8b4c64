"""DROL: a one-step actor that routes each data action to its nearest candidate.

    z_k ~ Unif(ball of radius sqrt(d_a)),  c_k = clip f(s, z_k),  k* = argmin_k |c_k - a|^2        (route)
    L_actor = bc_weight |c_k* - a|^2 / d_a  -  min_j Q_j(s, c_k*) / E|min_j Q_j|                  (actor_loss)
    L_Q     = mean_j (Q_j(s, a) - r - gamma m agg_j Qbar_j(s', clip f(s', z')))^2                 (critic_loss)

This is what the authors ran. `objective="equation"` is the paper's equation as printed:
`|f(s, z_k*) - a|^2 - alpha Q(s, f(s, z_k*))`, neither clipped nor normalised. docs/algorithms.md compares the two.

Reference: "Preserve Support, Not Correspondence: Dynamic Routing for Offline RL".
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import Algorithm, hyperparameter
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
    uniform_in_ball,
)
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.types import Metrics, Spec, Transition


class DROLPolicy(eqx.Module):
    """What `act` needs: the actor, and the critic that chooses when more than one action is drawn."""

    actor: LatentActor
    critic: QEnsemble


class DROLState(eqx.Module):
    """Everything that learns."""

    actor: Trainable[LatentActor]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> DROLPolicy:
        return DROLPolicy(self.actor.network, self.critic.network)


class Draws(eqx.Module):
    """All randomness of one update."""

    latent: Array  # z, [batch, K, action]
    next_latent: Array  # z', [batch, action]


class DROL(Algorithm):
    """A one-step policy that keeps the modes of the data: each action trains only its nearest candidate."""

    bc_weight: float = hyperparameter(
        1.0, "weight of behaviour cloning against a normalised Q; the alpha of the paper's tables", minimum=0
    )
    num_candidates: int = hyperparameter(16, "K, candidates drawn for each state", minimum=1)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    actor_aggregation: str = hyperparameter(
        "min", "how the critics make one value in the actor loss", choices=("mean", "min")
    )
    normalise_q: bool = hyperparameter(True, "divide Q in the actor loss by its mean magnitude over the batch")
    q_weight: float = hyperparameter(1.0, "weight of Q in the actor loss of the released code", minimum=0)
    objective: str = hyperparameter(
        "released",
        "actor loss: as the authors ran it, or the paper's equation (squared norm minus alpha times raw Q)",
        choices=("released", "equation"),
    )
    alpha: float = hyperparameter(1.0, "alpha, weight of Q when the objective is the equation", minimum=0)
    routing_precision: str = hyperparameter(
        "float32",
        "numbers that the routing pass multiplies; bfloat16 is faster where the hardware has it, and settles near-ties "
        "differently",
        choices=("float32", "bfloat16"),
    )
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for actor and critic", minimum=0)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of actor and critics", minimum=1
    )

    presets: ClassVar = {
        "laptop": {
            "hidden_sizes": (128, 128, 128),
            "num_candidates": 8,
            "objective": "equation",
            "alpha": 2.0,
            "q_aggregation": "min",
            "learning_rate": 1e-3,
            "target_rate": 0.02,
        },
    }

    @property
    def half_precision(self) -> bool:
        return self.routing_precision == "bfloat16"

    def init(self, key: Array, spec: Spec) -> DROLState:
        actor_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.hidden_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        return DROLState(trainable(actor), trainable(critic), critic)

    def update(self, state: DROLState, batch: Transition, key: Array) -> tuple[DROLState, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: DROLPolicy, observation: Array, key: Array, best_of: int = 1) -> Array:
        action_size = policy.actor.action_size
        latent = uniform_in_ball(key, (best_of, action_size), math.sqrt(action_size))
        actions = clip(policy.actor.candidates(observation, latent))  # [best_of, action]
        return best_action(policy.critic, observation, actions)

    def diagnose(self, state: DROLState, batch: Transition, key: Array) -> Metrics:
        """How the candidates spread and which of them win; `methods` of docs/algorithms.md defines each figure."""
        draws = self.draw(batch, key)
        actor = state.actor.network
        candidates = self.bound(actor.candidates(batch.observation, draws.latent))  # [batch, K, action]
        squared_error = jnp.square(candidates - batch.action[:, None]).mean(-1)  # [batch, K]
        centre = candidates.mean(1, keepdims=True)
        divergence = jnp.square(candidates - centre).mean()
        count = self.num_candidates
        pairwise = 2 * count / (count - 1) * divergence if count > 1 else jnp.zeros(())  # over ordered pairs j != k
        share = jnp.bincount(squared_error.argmin(-1), length=count) / len(squared_error)
        return {
            "routed_bc_loss": squared_error.min(-1).mean(),
            "single_sample_error": squared_error[:, 0].mean(),
            "candidate_divergence": divergence,
            "candidate_squared_distance": pairwise,
            "candidate_distance": jnp.sqrt(pairwise),
            "winner_entropy": -jax.scipy.special.xlogy(share, share).sum(),
            "winner_largest_share": share.max(),
        }

    def draw(self, batch: Transition, key: Array) -> Draws:
        latent_key, next_latent_key = jax.random.split(key)
        batch_size, action_size = batch.action.shape
        radius = math.sqrt(action_size)
        return Draws(
            latent=uniform_in_ball(latent_key, (batch_size, self.num_candidates, action_size), radius),
            next_latent=uniform_in_ball(next_latent_key, (batch_size, action_size), radius),
        )

    def step(self, state: DROLState, batch: Transition, draws: Draws) -> tuple[DROLState, Metrics]:
        """One update with given draws; every loss sees the networks from before it, and so does the target."""
        actor_before, critic_before = state.actor.network, state.critic.network
        winner = self.route(actor_before, batch, draws.latent)
        target = self.bellman_target(state.target_critic, actor_before, batch, draws.next_latent)
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.actor_loss, critic_before, batch, winner)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return DROLState(actor, critic, target_critic), actor_metrics | critic_metrics

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> Array:
        """The latent of the candidate nearest to each data action; forward only, so K costs no gradient."""
        candidates = self.bound(actor.candidates(batch.observation, latent, self.half_precision))  # [batch, K, action]
        distance = jnp.square(candidates - batch.action[:, None]).sum(-1)  # [batch, K]
        winner = distance.argmin(-1)  # the lowest index where several are nearest
        return jnp.take_along_axis(latent, winner[:, None, None], 1)[:, 0]  # [batch, action]

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        """Behaviour cloning and Q for the winner alone, run again with a gradient."""
        action = self.bound(actor(batch.observation, winner))  # [batch, action]
        squared_error = jnp.square(action - batch.action)
        q = aggregate(critic(batch.observation, action), self.actor_aggregation)  # [batch]
        if self.objective == "equation":
            bc_loss = squared_error.sum(-1).mean()
            loss = bc_loss - self.alpha * q.mean()
        else:
            bc_loss = squared_error.mean()
            scale = q_scale(q) if self.normalise_q else 1.0
            loss = self.bc_weight * bc_loss - self.q_weight * scale * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": bc_loss, "actor_q": q.mean()}

    def bellman_target(
        self, target_critic: QEnsemble, actor: LatentActor, batch: Transition, next_latent: Array
    ) -> Array:
        next_action = self.bound(actor(batch.next_observation, next_latent))
        next_q = aggregate(target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q  # [batch]

    def bound(self, action: Array) -> Array:
        return action if self.objective == "equation" else clip(action)
