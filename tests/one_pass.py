"""DROL written plainly, the oracle of the tests: all candidates and their critics are evaluated and differentiated."""

import jax
import jax.numpy as jnp

from drol.algorithms.drol import DROL, State
from drol.algorithms.parts import ADAM, Trainable, aggregate, clip, polyak
from drol.algorithms.routing import Draws
from drol.transition import Transition


def one_pass_loss(networks, algorithm: DROL, target_critic, batch: Transition, draws: Draws):
    """The whole loss of one update as one expression of (actor, critic)."""
    actor, critic = networks
    count = draws.latent.shape[1]
    observation = jnp.repeat(batch.observation[:, None], count, 1)  # [batch, K, observation]
    candidates = clip(actor(observation, draws.latent))
    distance = jnp.square(candidates - batch.action[:, None]).sum(-1)
    winner = jax.nn.one_hot(distance.argmin(-1), count)
    q = aggregate(jax.lax.stop_gradient(critic)(observation, candidates), algorithm.actor_aggregation)
    bc_loss = (winner * distance).sum(-1).mean() / batch.action.shape[-1]
    winner_q = (winner * q).sum(-1)
    magnitude = jnp.maximum(jnp.abs(jax.lax.stop_gradient(winner_q)).mean(), 1e-6) if algorithm.normalise_q else 1.0
    actor_loss = algorithm.bc_weight * bc_loss - algorithm.q_weight * winner_q.mean() / magnitude
    next_action = clip(jax.lax.stop_gradient(actor)(batch.next_observation, draws.next_latent))
    next_q = aggregate(target_critic(batch.next_observation, next_action), algorithm.q_aggregation)
    target = batch.reward + algorithm.discount * batch.continues * next_q
    critic_loss = jnp.square(critic(batch.observation, batch.action) - target).mean()
    return actor_loss + critic_loss, {"actor_loss": actor_loss, "critic_loss": critic_loss, "routed_bc_loss": bc_loss}


def one_pass_step(algorithm: DROL, state: State, batch: Transition, draws: Draws):
    """One update by the plain formulation."""
    networks = (state.actor.network, state.critic.network)
    gradient, metrics = jax.grad(one_pass_loss, has_aux=True)(networks, algorithm, state.target_critic, batch, draws)
    trained = []
    for part, part_gradient in zip((state.actor, state.critic), gradient, strict=True):
        direction, optimiser = ADAM.update(part_gradient, part.optimiser)
        network = jax.tree.map(lambda old, step: old - algorithm.learning_rate * step, part.network, direction)
        trained.append(Trainable(network, optimiser))
    target_critic = polyak(state.critic.network, state.target_critic, algorithm.target_rate)
    return State(*trained, target_critic), metrics
