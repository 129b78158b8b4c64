"""DROL without a weight to tune: the critic never asks the actor, and the actor clones what the critic prefers.

    L_V = w |min_j Qbar_j(s, a) - V(s)|^2,  w = kappa above V and 1 - kappa below it              (parts.expectile_loss)
    L_Q = sum_j (Q_j(s, a) - r - gamma m V(s'))^2                                             (parts.summed_critic_loss)
    A   = min_j Q_j(s, a) - V(s),  S = E|A|,  u = exp(A / (T S)) between e^-10 and e^4, over its mean        (worth)
    z_k ~ Unif(ball of radius sqrt(d_a)),  k* = argmin_k |clip f(s, z_k) - a|^2                              (route)
    v   = variance of the K candidates of a state, mean over dimensions and states                           (route)
    L_actor = u |f(s, z_k*) - a|^2 / d_a  -  q_weight v min_j Q_j(s, clip f(s, z_k*)) / S               (actor_loss)

Advantages are measured by their own mean magnitude and distances by the spread of the candidates, so nothing depends on
the size of rewards, the length of a task or how much the actions of a state differ. Candidates that follow Q to one
place have less spread, so that Q weighs less and cloning holds them.
The policy acts with the average of the actor's weights. docs/beyond.md says what is known of it, and what is not yet.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    best_action,
    clip,
    descend,
    expectile_loss,
    polyak,
    summed_critic_loss,
    trainable,
)
from drol.algorithms.routing import Draws, candidate_diagnostics, draw_for_update, draw_latents, nearest_latent
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble, ValueFunction
from drol.networks.sampler import Sampler, latent_sampler
from drol.types import Metrics, Spec, Transition

LOWEST_LOG, HIGHEST_LOG = -10.0, 4.0  # of the weight of a data action before it is divided by its mean


class Policy(eqx.Module):
    """What `act` needs: the averaged actor, and the critic that chooses when more than one action is drawn."""

    actor: LatentActor
    critic: QEnsemble


class State(eqx.Module):
    """Everything that learns."""

    actor: Trainable[LatentActor]
    average: LatentActor
    value: Trainable[ValueFunction]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> Policy:
        return Policy(self.average, self.critic.network)


class DROLAuto(Algorithm):
    """DROL with one setting for every task: routed cloning of the better actions under a critic of the data alone."""

    temperature: float = hyperparameter(
        1.0, "T, how sharply better actions are preferred, in units of the mean advantage", minimum=1e-6
    )
    q_weight: float = hyperparameter(
        0.2, "weight of Q for the winner, in units of the mean advantage and of the candidates' variance", minimum=0
    )
    expectile: float = hyperparameter(0.9, "kappa, which expectile of Q the value is", minimum=0, maximum=1)
    average_rate: float = hyperparameter(
        0.002, "how fast the averaged actor, which acts, follows the trained one", minimum=0, maximum=1
    )
    num_candidates: int = hyperparameter(16, "K, candidates drawn for each state", minimum=2, maximum=65536)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for all networks", minimum=0, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key, value_key = jax.random.split(key, 3)
        critic_sizes = self.critic_hidden_sizes or self.hidden_sizes
        critic = QEnsemble(critic_key, spec, critic_sizes)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        value = ValueFunction(value_key, spec, critic_sizes)
        return State(trainable(actor), actor, trainable(value), trainable(critic), critic)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        latent = draw_latents(key, (self.check_best_of(best_of), policy.actor.action_size))
        actions = clip(policy.actor.candidates(observation, latent))  # [best_of, action]
        return best_action(policy.critic, observation, actions, how="min")

    def sampler(self, policy: Policy) -> Sampler:
        return latent_sampler(policy.actor, policy.critic, "ball", "min")

    def draw(self, batch: Transition, key: Array) -> Draws:
        return draw_for_update(batch, self.num_candidates, key)

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; every loss sees the networks from before it, and so does the target."""
        actor_before, critic_before, value_before = state.actor.network, state.critic.network, state.value.network
        target = batch.reward + self.discount * batch.continues * value_before(batch.next_observation)  # [batch]
        winner, spread = self.route(actor_before, batch, draws.latent)
        worth, scale = self.worth(critic_before, value_before, batch)
        value, value_metrics = descend(
            state.value, self.learning_rate, expectile_loss, state.target_critic, batch, self.expectile
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, summed_critic_loss, batch, target)
        actor, actor_metrics = descend(
            state.actor, self.learning_rate, self.actor_loss, critic_before, batch, winner, worth, spread / scale
        )
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        average = polyak(actor.network, state.average, self.average_rate)
        metrics = {"advantage_scale": scale, "effective_share": 1 / jnp.square(worth).mean(), "spread": spread}
        return State(actor, average, value, critic, target_critic), (
            value_metrics | critic_metrics | actor_metrics | metrics
        )

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> tuple[Array, Array]:
        """Return the latent of the candidate nearest to each data action, and the variance of candidates.

        Forward only, so K costs no gradient.
        """
        candidates = clip(actor.candidates(batch.observation, latent))  # [batch, K, action]
        return nearest_latent(candidates, latent, batch.action), candidates.var(1, ddof=1).mean()

    def worth(self, critic: QEnsemble, value: ValueFunction, batch: Transition) -> tuple[Array, Array]:
        """Return the weight [batch] of each data action, 1 in the mean, and the mean magnitude of advantages."""
        advantage = critic(batch.observation, batch.action).min(0) - value(batch.observation)
        scale = jnp.maximum(jnp.abs(advantage).mean(), 1e-6)
        weight = jnp.exp(jnp.clip(advantage / (self.temperature * scale), LOWEST_LOG, HIGHEST_LOG))
        return weight / weight.mean(), scale

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array, worth: Array, q_unit: Array
    ) -> tuple[Array, Metrics]:
        """Return weighted behaviour cloning and Q for the winner alone.

        Cloning sees the output before it is clipped, so that an action outside the box still feels its way back.
        """
        output = actor(batch.observation, winner)  # [batch, action]
        error = jnp.square(output - batch.action).mean(-1)  # [batch]
        q = critic(batch.observation, clip(output)).min(0)  # [batch]
        loss = (worth * error).mean() - self.q_weight * q_unit * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": error.mean(), "actor_q": q.mean()}

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        candidates = clip(state.actor.network.candidates(batch.observation, self.draw(batch, key).latent))
        return candidate_diagnostics(candidates, batch.action)
