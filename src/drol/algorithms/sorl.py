"""SORL: a shortcut policy that can act in 1, 2, 4 or 8 steps, improved by Q through its own sampler.

    sample(s, k): x ~ N(0, I);  x <- x + u(s, x, i/k, log2 k)/k for i < k;  clip
    x_t = (1 - (1 - e) t) x_0 + t a
    L_FM    = |u(s, x_t, t, 3) - (a - (1 - e) x_0)|^2 / d_a,  t in {0, 1/8, ..}        (actor_loss)
    L_SC    = |u(s, x_t, t, c) - (v1 + v2)/2|^2 / d_a,  v1, v2: two half steps of the target actor with code c + 1
    L_actor = 10 L_FM + 10 L_SC - q_weight mean_j Q_j(s, sample(s, k); k) / E|q|
    L_Q     = mean_j (Q_j(s, a; k) - r - gamma m agg_j Qbar_j(s', sample(s', k); k))^2 (critic_loss)

m = 1 - terminal (`batch.continues`). The published numbers are from the default, `released_optimiser=True`: a critic
step, then an actor step, with one Adam and one gradient norm over all networks, and a Bellman target that carries a
gradient into the actor. `released_optimiser=False` gives each network its own Adam and stops that gradient.

Reference: "Scaling Offline RL via Efficient and Expressive Shortcut Models", https://arxiv.org/abs/2505.22866, and its
released code.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    adam_step,
    aggregate,
    best_action,
    clip,
    hold_part,
    polyak,
    q_scale,
    trainable,
)
from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble
from drol.networks.sampler import Sampler, flow_sampler
from drol.transition import Metrics, Spec, Transition

STEPS = (1, 2, 4, 8)  # k, the possible numbers of steps of a sample
SMALLEST_NOISE = 1e-5  # e, the share of the noise that remains at time 1


class Networks(eqx.Module):
    """Actor and critic, in one optimiser."""

    actor: VectorField  # u(s, x, time, step code)
    critic: QEnsemble  # Q(s, a; k)


class State(eqx.Module):
    """The state of training."""

    networks: Trainable[Networks]
    target: Networks

    @property
    def policy(self) -> Networks:
        return self.networks.network


class Draws(eqx.Module):
    """All randomness of one update."""

    critic_steps: Array  # k of the critic loss, a scalar of STEPS
    next_noise: Array  # [batch, action]
    actor_steps: Array  # k of the actor loss, a scalar of STEPS
    actor_noise: Array  # [batch, action]
    flow_noise: Array  # x_0 of flow matching, [batch, action]
    flow_time: Array  # t of flow matching, [batch, 1]
    shortcut_noise: Array  # x_0 of self-consistency, [batch, action]
    shortcut_time: Array  # t of self-consistency, [batch, 1]


class SORL(Algorithm):
    """A policy that trades steps for quality at test time.

    Paper: https://arxiv.org/abs/2505.22866.
    """

    q_weight: float = hyperparameter(100.0, "weight of Q against flow matching and self-consistency", minimum=0)
    flow_weight: float = hyperparameter(10.0, "weight of flow matching", minimum=0)
    shortcut_weight: float = hyperparameter(10.0, "weight of self-consistency", minimum=0)
    act_steps: int = hyperparameter(8, "k, steps of a sample when acting", choices=STEPS)
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=("mean", "min")
    )
    gradient_norm: float = hyperparameter(1.0, "largest norm of a gradient", minimum=0)
    released_optimiser: bool = hyperparameter(
        True, "one Adam and one norm for all networks, and a gradient through the target, as the released code has it"
    )
    target_rate: float = hyperparameter(0.005, "tau, how fast both targets follow", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(1e-4, "step size of Adam, for actor and critic", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    acting: ClassVar = ("act_steps",)
    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        networks = Networks(
            VectorField(actor_key, spec, self.hidden_sizes, conditions=2),
            QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes, conditions=1),
        )
        return State(trainable(networks), networks)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Networks, observation: Array, key: Array, best_of: int | None = None) -> Array:
        noise = jax.random.normal(key, (self.check_act(observation, best_of), policy.actor.action_size))
        actions = shortcut_action(policy.actor, observation, noise, self.act_steps)  # [best_of, action]
        return best_action(policy.critic, observation, actions, float(self.act_steps), how=self.q_aggregation)

    def sampler(self, policy: Networks) -> Sampler:
        steps = self.act_steps
        flow = flow_sampler(policy.actor, policy.critic, steps, (math.log2(steps),), self.q_aggregation)
        return replace(flow, critic_conditions=(float(steps),))

    def critics(self, policy: Networks) -> Callable[[Array, Array], Array]:
        """Return the critics of actions drawn with `act_steps` steps."""
        return lambda observation, action: policy.critic(observation, action, float(self.act_steps))

    def draw(self, batch: Transition, key: Array) -> Draws:
        (
            critic_steps_key,
            next_noise_key,
            actor_steps_key,
            actor_noise_key,
            flow_noise_key,
            flow_time_key,
            shortcut_noise_key,
            shortcut_time_key,
        ) = jax.random.split(key, 8)
        shape = batch.action.shape
        width = 0.5 ** shortcut_codes(shape[0])  # h, [batch, 1]
        return Draws(
            critic_steps=jax.random.choice(critic_steps_key, jnp.asarray(STEPS)),
            next_noise=jax.random.normal(next_noise_key, shape),
            actor_steps=jax.random.choice(actor_steps_key, jnp.asarray(STEPS)),
            actor_noise=jax.random.normal(actor_noise_key, shape),
            flow_noise=jax.random.normal(flow_noise_key, shape),
            flow_time=jax.random.randint(flow_time_key, (shape[0], 1), 0, 8) / 8,
            shortcut_noise=jax.random.normal(shortcut_noise_key, shape),
            shortcut_time=jnp.floor(jax.random.uniform(shortcut_time_key, (shape[0], 1)) / width) * width,
        )

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do a critic step and an actor step with given draws; targets move towards the networks from before it."""
        before = state.networks.network
        gradient, critic_metrics = jax.grad(self.critic_loss, has_aux=True)(before, state.target.critic, batch, draws)
        networks = adam_step(state.networks, self.limit(gradient), self.learning_rate)
        if not self.released_optimiser:
            networks = hold_part(networks, state.networks, "actor")
        after_critic_step = networks
        actor_gradient, actor_metrics = jax.grad(self.actor_loss, has_aux=True)(
            networks.network.actor, before.critic, state.target.actor, batch, draws
        )
        no_gradient = jax.tree.map(jnp.zeros_like, before.critic)
        networks = adam_step(networks, self.limit(Networks(actor_gradient, no_gradient)), self.learning_rate)
        if not self.released_optimiser:
            networks = hold_part(networks, after_critic_step, "critic")
        target = polyak(before, state.target, self.target_rate)
        return State(networks, target), critic_metrics | actor_metrics

    def limit(self, gradient: Networks) -> Networks:
        """Scale a gradient down to a norm of at most `gradient_norm`."""
        norm = optax.tree.norm(gradient)
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, self.gradient_norm / norm), gradient)

    def critic_loss(
        self, networks: Networks, target_critic: QEnsemble, batch: Transition, draws: Draws
    ) -> tuple[Array, Metrics]:
        actor = networks.actor if self.released_optimiser else jax.lax.stop_gradient(networks.actor)
        steps = draws.critic_steps.astype(jnp.float32)
        next_action = sample_action(actor, batch.next_observation, draws.next_noise, draws.critic_steps)
        next_q = aggregate(target_critic(batch.next_observation, next_action, steps), self.q_aggregation)
        target = batch.reward + self.discount * batch.continues * next_q
        q = networks.critic(batch.observation, batch.action, steps)  # [ensemble, batch]
        loss = jnp.square(q - target).mean()
        return loss, {"critic_loss": loss, "data_q": q.mean()}

    def actor_loss(
        self, actor: VectorField, critic: QEnsemble, target_actor: VectorField, batch: Transition, draws: Draws
    ) -> tuple[Array, Metrics]:
        flow_x = self.path(batch.action, draws.flow_noise, draws.flow_time)
        velocity = batch.action - (1 - SMALLEST_NOISE) * draws.flow_noise
        flow_loss = jnp.square(actor(batch.observation, flow_x, draws.flow_time, 3.0) - velocity).mean()

        code = shortcut_codes(len(batch.action))  # c, [batch, 1]
        half = 0.5 ** (code + 1)  # h/2
        x, time = self.path(batch.action, draws.shortcut_noise, draws.shortcut_time), draws.shortcut_time
        first = target_actor(batch.observation, x, time, code + 1)
        second = target_actor(batch.observation, x + half * first, time + half, code + 1)
        shortcut_loss = jnp.square(actor(batch.observation, x, time, code) - (first + second) / 2).mean()

        action = sample_action(actor, batch.observation, draws.actor_noise, draws.actor_steps)
        q = critic(batch.observation, action, draws.actor_steps.astype(jnp.float32)).mean(0)  # [batch]
        q_loss = -q_scale(q) * q.mean()
        loss = self.flow_weight * flow_loss + self.shortcut_weight * shortcut_loss + self.q_weight * q_loss
        return loss, {"actor_loss": loss, "flow_loss": flow_loss, "shortcut_loss": shortcut_loss, "actor_q": q.mean()}

    def path(self, action: Array, noise: Array, time: Array) -> Array:
        """Return the point x_t between noise (time 0) and the action (time 1)."""
        return (1 - (1 - SMALLEST_NOISE) * time) * noise + time * action


def shortcut_codes(batch_size: int) -> Array:
    """Return the step code c [batch, 1] of each row: 2, 1 and 0 for a third of the batch each, 0 for the remainder."""
    third = batch_size // 3
    return jnp.repeat(
        jnp.asarray([2.0, 1.0, 0.0]),
        jnp.asarray([third, third, batch_size - 2 * third]),
        total_repeat_length=batch_size,
    )[:, None]


def shortcut_action(actor: VectorField, observation: Array, noise: Array, steps: int) -> Array:
    """Turn noise into an action in a fixed number of steps."""
    features, code = actor.encoder(observation), math.log2(steps)

    def move(x: Array, time: Array) -> tuple[Array, None]:
        return x + actor.velocity(features, x, time, code) / steps, None

    return clip(jax.lax.scan(move, noise, jnp.arange(steps) / steps)[0])


def sample_action(actor: VectorField, observation: Array, noise: Array, steps: Array) -> Array:
    """Turn noise into an action; the number of steps, one of STEPS, is known only at run time."""
    branches = [lambda actor, noise, k=k: shortcut_action(actor, observation, noise, k) for k in STEPS]
    return jax.lax.switch(jnp.searchsorted(jnp.asarray(STEPS), steps), branches, actor, noise)
