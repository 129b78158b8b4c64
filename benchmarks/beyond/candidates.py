"""What was tried on the way to `drol-auto`, each a small change of DROL beside its equation.

docs/beyond.md has the scores, candidates.toml the command. None of it is part of the package. Two of the ideas need no
code: best of N by the mean of two critics minus their deviation is best of N by their minimum
(`--best-of-aggregation min`), and best of N in the Bellman target is `--target-candidates N`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol import register_algorithm
from drol.algorithms.base import hyperparameter
from drol.algorithms.drol import DROL
from drol.algorithms.parts import Trainable, aggregate, clip, critic_loss, descend, polyak, q_scale, trainable
from drol.algorithms.routing import Draws, nearest_latent
from drol.networks.actors import GaussianActor, LatentActor
from drol.networks.critics import QEnsemble
from drol.types import Metrics, Spec, Transition


@register_algorithm("drol-relaxed")
class RelaxedDROL(DROL):
    """A share of the rows goes to a random candidate: z_k* = z_1 there, and the nearest elsewhere."""

    epsilon: float = hyperparameter(0.1, "share of the rows whose winner is drawn at random", minimum=0, maximum=1)

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> Array:
        nearest = super().route(actor, batch, latent)
        relaxed = jnp.arange(len(nearest)) < self.epsilon * len(nearest)  # the rows of a batch are in random order
        return jnp.where(relaxed[:, None], latent[:, 0], nearest)


@register_algorithm("drol-fresh")
class FreshDROL(DROL):
    """The winner clones and another draw follows Q: bc |c_k* - a|^2 - Q(s, c_1) / E|Q|."""

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> Array:
        return jnp.stack([super().route(actor, batch, latent), latent[:, 0]])  # [2, batch, action]

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        cloned, followed = clip(actor(batch.observation, winner))
        bc_loss = jnp.square(cloned - batch.action).mean()
        q = aggregate(critic(batch.observation, followed), self.actor_aggregation)
        loss = self.bc_weight * bc_loss - self.q_weight * q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": bc_loss, "actor_q": q.mean()}


@register_algorithm("drol-weighted")
class WeightedDROL(DROL):
    """Cloning where the data is better: g |c_k* - a|^2 with g = 2 sigmoid(D / E|D|), D = Q(s, a) - Q(s, c_k*)."""

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: Array
    ) -> tuple[Array, Metrics]:
        action = clip(actor(batch.observation, winner))
        q = aggregate(critic(batch.observation, action), self.actor_aggregation)
        better = jax.lax.stop_gradient(aggregate(critic(batch.observation, batch.action), self.actor_aggregation) - q)
        error = jnp.square(action - batch.action).mean(-1)
        bc_loss = (2 * jax.nn.sigmoid(better * q_scale(better)) * error).mean()
        loss = self.bc_weight * bc_loss - self.q_weight * q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "routed_bc_loss": error.mean(), "actor_q": q.mean()}


@register_algorithm("drol-units")
class UnitDROL(DROL):
    """DROL's critic, which asks the actor, with weights in the units of the data.

    A = Q(s, a) - Q(s, c_1),  S = E|A|,  u = exp(A / (T S)) over its mean,  v = variance of the candidates
    L_actor = u |f(s, z_k*) - a|^2 / d_a - q_weight v Q(s, c_k*) / S
    """

    temperature: float = hyperparameter(2.0, "T, how sharply better actions are preferred", minimum=1e-6)
    q_weight: float = hyperparameter(0.1, "weight of Q in units of S and v", minimum=0)

    def route(self, actor: LatentActor, batch: Transition, latent: Array) -> tuple[Array, Array, Array]:
        """Return the latent of the nearest candidate, another candidate, and the variance of all."""
        candidates = clip(actor.candidates(batch.observation, latent))  # [batch, K, action]
        winner = nearest_latent(candidates, latent, batch.action)
        return winner, candidates[:, 0], candidates.var(1, ddof=1).mean()

    def actor_loss(
        self, actor: LatentActor, critic: QEnsemble, batch: Transition, winner: tuple[Array, Array, Array]
    ) -> tuple[Array, Metrics]:
        latent, drawn, spread = winner
        advantage = critic(batch.observation, batch.action).min(0) - critic(batch.observation, drawn).min(0)
        scale = jnp.maximum(jnp.abs(advantage).mean(), 1e-6)
        worth = jnp.exp(jnp.clip(advantage / (self.temperature * scale), -10.0, 4.0))
        worth /= worth.mean()
        output = actor(batch.observation, latent)
        error = jnp.square(output - batch.action).mean(-1)
        q = critic(batch.observation, clip(output)).min(0)
        loss = (worth * error).mean() - self.q_weight * spread / scale * q.mean()
        metrics = {"advantage_scale": scale, "effective_share": 1 / jnp.square(worth).mean(), "spread": spread}
        return loss, {"actor_loss": loss, "routed_bc_loss": error.mean(), "actor_q": q.mean()} | metrics


class SteeredPolicy(eqx.Module):
    """What `act` needs: the map from latents to actions, and what chooses the latent."""

    actor: LatentActor
    chooser: GaussianActor
    critic: QEnsemble


class SteeredState(eqx.Module):
    """Everything that learns."""

    actor: Trainable[LatentActor]
    chooser: Trainable[GaussianActor]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> SteeredPolicy:
        return SteeredPolicy(self.actor.network, self.chooser.network, self.critic.network)


@register_algorithm("drol-steered")
class SteeredDROL(DROL):
    """Candidates clone and nothing else; a network learns which latent is best, and improves in no other way.

    L_actor = |c_k* - a|^2 / d_a;  L_g = |g(s) - z_b|^2 with b the best of K by min_j Q_j;  the policy is f(s, g(s)).
    """

    def init(self, key: Array, spec: Spec) -> SteeredState:
        start = super().init(key, spec)
        chooser = GaussianActor(jax.random.fold_in(key, 1), spec, self.hidden_sizes)
        return SteeredState(start.actor, trainable(chooser), start.critic, start.target_critic)

    def act(self, policy: SteeredPolicy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        del key, best_of  # it draws nothing
        return clip(policy.actor(observation, policy.chooser(observation)))

    def step(self, state: SteeredState, batch: Transition, draws: Draws) -> tuple[SteeredState, Metrics]:
        actor_before, critic_before, chooser_before = state.actor.network, state.critic.network, state.chooser.network
        candidates = clip(actor_before.candidates(batch.observation, draws.latent))  # [batch, K, action]
        winner = nearest_latent(candidates, draws.latent, batch.action)
        value = jax.vmap(lambda observation, actions: critic_before(observation, actions).min(0))
        best = value(batch.observation, candidates).argmax(-1)
        best_latent = jnp.take_along_axis(draws.latent, best[:, None, None], 1)[:, 0]
        next_action = clip(actor_before(batch.next_observation, chooser_before(batch.next_observation)))
        next_q = aggregate(state.target_critic(batch.next_observation, next_action), self.q_aggregation)
        target = batch.reward + self.discount * batch.continues * next_q
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.cloning_loss, batch, winner)
        chooser, chooser_metrics = descend(state.chooser, self.learning_rate, self.choosing_loss, batch, best_latent)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        metrics = actor_metrics | chooser_metrics | critic_metrics
        return SteeredState(actor, chooser, critic, target_critic), metrics

    def cloning_loss(self, actor: LatentActor, batch: Transition, winner: Array) -> tuple[Array, Metrics]:
        loss = jnp.square(clip(actor(batch.observation, winner)) - batch.action).mean()
        return loss, {"routed_bc_loss": loss}

    def choosing_loss(self, chooser: GaussianActor, batch: Transition, best: Array) -> tuple[Array, Metrics]:
        loss = jnp.square(chooser(batch.observation) - best).mean()
        return loss, {"choosing_loss": loss}
