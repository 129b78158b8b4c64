"""SAC: a stochastic policy that earns reward and entropy; the weight of the entropy is learned.

    a = tanh u,  u ~ N(mu(s), sigma(s)^2),  log pi(a|s) = log N(u) - sum_i log(1 - a_i^2)
    y       = r + gamma m (min_j Qbar_j(s', a') - alpha log pi(a'|s')),  a' ~ pi(s')
    L_Q     = mean_j (Q_j(s, a) - y)^2
    L_pi    = alpha log pi(a~|s) - min_j Q_j(s, a~),  a~ ~ pi(s)
    L_alpha = alpha (-log pi(a~|s) - H),  H = entropy_share d_a

m is the not-terminal mask. As in OGBench's code, one Adam covers actor, critics and log alpha, every loss sees the
networks from before the update, and the target critics follow them. The defaults are OGBench's settings for its ant.

Reference: "Soft Actor-Critic Algorithms and Applications".
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.parts import Trainable, adam_step, polyak, trainable
from drol.compiling import fast_jit
from drol.networks.mlp import MLP
from drol.transition import Metrics

LOG_STD_RANGE = (-5.0, 2.0)
EXPLORATION, UPDATE = 0, 1  # purposes of the random numbers of a step


class Batch(NamedTuple):
    """Transitions, each field with the batch as its first axis."""

    observation: Array
    action: Array
    reward: Array
    not_terminal: Array
    next_observation: Array


class Networks(eqx.Module):
    """Actor, critics and temperature, in one optimiser."""

    actor: MLP  # returns mu and log sigma side by side
    critics: MLP  # every array has the ensemble of two as its first axis
    log_alpha: Array


class State(eqx.Module):
    """All values that training changes."""

    networks: Trainable[Networks]
    target_critics: MLP


@dataclass(frozen=True)
class SAC:
    """The settings of SAC."""

    hidden_sizes: tuple[int, ...] = (256, 256)
    batch_size: int = 256
    learning_rate: float = 1e-4
    discount: float = 0.99
    target_rate: float = 0.005
    entropy_share: float = -0.5

    def init(self, key: Array, observation_size: int, action_size: int) -> State:
        """Return the state before the first update."""
        actor_key, critic_key = jax.random.split(key)
        actor = MLP(actor_key, observation_size, self.hidden_sizes, 2 * action_size, out_scale=0.01)
        critics = jax.vmap(lambda key: MLP(key, observation_size + action_size, self.hidden_sizes, 1))(
            jax.random.split(critic_key)
        )
        return State(trainable(Networks(actor, critics, jnp.zeros(()))), critics)

    def loss(
        self, networks: Networks, target_critics: MLP, batch: Batch, noise: Array, next_noise: Array
    ) -> tuple[Array, Metrics]:
        """Return L_Q + L_pi + L_alpha and the metrics; the noises [batch, action] determine the two sampled actions."""
        fixed = jax.lax.stop_gradient(networks)
        alpha, fixed_alpha = jnp.exp(networks.log_alpha), jnp.exp(fixed.log_alpha)
        next_action, next_log_density = draw(fixed.actor, batch.next_observation, next_noise)
        next_value = values(target_critics, batch.next_observation, next_action).min(0) - fixed_alpha * next_log_density
        target = batch.reward + self.discount * batch.not_terminal * next_value
        q = values(networks.critics, batch.observation, batch.action)
        critic_loss = jnp.square(q - target).mean()
        action, log_density = draw(networks.actor, batch.observation, noise)
        actor_q = values(fixed.critics, batch.observation, action).min(0)
        actor_loss = (fixed_alpha * log_density - actor_q).mean()
        entropy = -jax.lax.stop_gradient(log_density).mean()
        alpha_loss = alpha * (entropy - self.entropy_share * batch.action.shape[-1])
        metrics = {"critic_loss": critic_loss, "actor_loss": actor_loss, "entropy": entropy, "alpha": alpha}
        return critic_loss + actor_loss + alpha_loss, metrics


def draw(actor: MLP, observation: Array, noise: Array) -> tuple[Array, Array]:
    """Return the policy's actions for given noise, and their log densities."""
    mean, log_std = jnp.split(actor(observation), 2, -1)
    log_std = jnp.clip(log_std, *LOG_STD_RANGE)
    unbounded = mean + jnp.exp(log_std) * noise
    gaussian = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
    log_slope = 2 * (jnp.log(2.0) - unbounded - jax.nn.softplus(-2 * unbounded))  # log(1 - tanh(u)^2), stable
    return jnp.tanh(unbounded), (gaussian - log_slope).sum(-1)


def values(critics: MLP, observation: Array, action: Array) -> Array:
    """Return the values [ensemble, batch]."""
    x = jnp.concatenate([observation, action], -1)
    return jax.vmap(lambda critic: critic(x))(critics)[..., 0]


@fast_jit(static_argnames="sac")
def update(sac: SAC, state: State, batch: Batch, key: Array, step: int) -> tuple[State, Metrics]:
    """Return the state after the update of a step."""
    noise, next_noise = jax.random.normal(step_key(key, step, UPDATE), (2, *batch.action.shape))
    before = state.networks.network
    gradient, metrics = jax.grad(sac.loss, has_aux=True)(before, state.target_critics, batch, noise, next_noise)
    networks = adam_step(state.networks, gradient, sac.learning_rate)
    return State(networks, polyak(before.critics, state.target_critics, sac.target_rate)), metrics


@fast_jit()
def explore(actor: MLP, observation: Array, key: Array, step: int) -> Array:
    """Return a sampled action of the policy for a step."""
    noise = jax.random.normal(step_key(key, step, EXPLORATION), (actor.layers[-1].bias.shape[-1] // 2,))
    return draw(actor, observation, noise)[0]


def step_key(key: Array, step: int, purpose: int) -> Array:
    return jax.random.fold_in(jax.random.fold_in(key, step), purpose)
