"""ReBRAC: a deterministic actor with behaviour cloning in actor and critic, updated every second step.

    a'   = clip(pibar(s') + clip(0.2 N(0, I), -0.5, 0.5))
    L_Q  = mean_j (Q_j(s, a) - r - gamma m (min_j Qbar_j(s', a') - critic_bc_weight |a' - a_next|^2))^2
    L_pi = -min_j Q_j(s, pi(s)) / E|q|  +  actor_bc_weight |pi(s) - a|^2,  pi = tanh mu       (actor_loss)

m = 1 - terminal (`batch.continues`). The actor and both targets move only on even steps. In the released code one Adam
covers actor and critics, so on the other steps the actor still moves by momentum; `skipped_actor="frozen"` prevents
that, as in the equations. The published numbers on OGBench are from `skipped_actor="momentum"` (the default) and
`mask_next_action=False` (in the presets of the paper).

Reference: "Revisiting the Minimalist Approach to Offline Reinforcement Learning", https://arxiv.org/abs/2305.09836.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import (
    Trainable,
    adam_step,
    clip,
    critic_loss,
    hold_part,
    polyak,
    q_scale,
    trainable,
)
from drol.networks.actors import GaussianActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import TANH, Sampler, mean_sampler
from drol.transition import Metrics, Spec, Transition


class Networks(eqx.Module):
    """Actor and critic, in one optimiser."""

    actor: GaussianActor  # the action is tanh of its mean
    critic: QEnsemble


class State(eqx.Module):
    """The state of training, with the number of updates done."""

    networks: Trainable[Networks]
    target: Networks
    step: Array

    @property
    def policy(self) -> GaussianActor:
        return self.networks.network.actor


class Draws(eqx.Module):
    """All randomness of one update."""

    noise: Array  # of the target action, before scaling and clipping, [batch, action]


class ReBRAC(Algorithm):
    """A deterministic policy held to the data by squared distance, in its own loss and in the critic's target.

    Paper: https://arxiv.org/abs/2305.09836.
    """

    actor_bc_weight: float = hyperparameter(0.1, "beta_1, weight of behaviour cloning in the actor", minimum=0)
    critic_bc_weight: float = hyperparameter(0.01, "beta_2, weight of behaviour cloning in the target", minimum=0)
    actor_noise: float = hyperparameter(0.2, "deviation of the noise on the target action", minimum=0)
    actor_noise_clip: float = hyperparameter(0.5, "largest noise on the target action", minimum=0)
    actor_interval: int = hyperparameter(
        2, "steps between two updates of actor and targets", minimum=1, maximum=1_000_000
    )
    skipped_actor: str = hyperparameter(
        "momentum",
        "the actor on the other steps: as in the released code, or unchanged",
        choices=("momentum", "frozen"),
    )
    mask_next_action: bool = hyperparameter(
        True, "leave the target's cloning term out where the episode stopped; the released code does not"
    )
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    target_rate: float = hyperparameter(0.005, "tau, how fast the targets follow", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for actor and critic", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    draws_actions: ClassVar = False
    presets: ClassVar = {"laptop": SMALL}

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        networks = Networks(
            GaussianActor(actor_key, spec, self.hidden_sizes),
            QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes),
        )
        return State(trainable(networks), networks, jnp.zeros((), jnp.int32))

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: GaussianActor, observation: Array, key: Array, best_of: int | None = None) -> Array:  # noqa: ARG002
        self.check_act(observation, best_of)
        return jnp.tanh(policy(observation))

    def sampler(self, policy: GaussianActor) -> Sampler:
        return mean_sampler(policy, TANH)

    def explore(self, policy: GaussianActor, observation: Array, key: Array) -> Array:
        action = jnp.tanh(policy(observation))
        return clip(action + self.smoothing(jax.random.normal(key, action.shape)))

    def draw(self, batch: Transition, key: Array) -> Draws:
        return Draws(noise=jax.random.normal(key, batch.action.shape))

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and targets use the networks from before it."""
        before = state.networks.network
        step = state.step + 1
        full = step % self.actor_interval == 0
        target = self.bellman_target(state.target, batch, draws.noise)
        critic_gradient, critic_metrics = jax.grad(critic_loss, has_aux=True)(before.critic, batch, target)
        actor_gradient, actor_metrics = jax.grad(self.actor_loss, has_aux=True)(before.actor, before.critic, batch)
        actor_gradient = jax.tree.map(lambda leaf: jnp.where(full, leaf, 0.0), actor_gradient)
        networks = adam_step(state.networks, Networks(actor_gradient, critic_gradient), self.learning_rate)
        if self.skipped_actor == "frozen":
            networks = hold_part(networks, state.networks, "actor", ~full)
        target_networks = jax.tree.map(
            lambda new, old: jnp.where(full, new, old), polyak(before, state.target, self.target_rate), state.target
        )
        return State(networks, target_networks, step), actor_metrics | critic_metrics

    def actor_loss(self, actor: GaussianActor, critic: QEnsemble, batch: Transition) -> tuple[Array, Metrics]:
        action = jnp.tanh(actor(batch.observation))
        bc_loss = jnp.square(action - batch.action).sum(-1).mean()
        q = critic(batch.observation, action).min(0)  # [batch]
        loss = self.actor_bc_weight * bc_loss - q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "bc_loss": bc_loss, "actor_q": q.mean()}

    def bellman_target(self, target: Networks, batch: Transition, noise: Array) -> Array:
        next_action = clip(jnp.tanh(target.actor(batch.next_observation)) + self.smoothing(noise))
        next_q = target.critic(batch.next_observation, next_action).min(0)
        distance = jnp.square(next_action - batch.next_action).sum(-1)
        if self.mask_next_action:
            distance = distance * batch.next_action_known
        return batch.reward + self.discount * batch.continues * (next_q - self.critic_bc_weight * distance)

    def smoothing(self, noise: Array) -> Array:
        """Scale and clip noise of standard deviation 1."""
        return jnp.clip(self.actor_noise * noise, -self.actor_noise_clip, self.actor_noise_clip)
