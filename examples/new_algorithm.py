"""Define TD3+BC outside the package. Copy this file and change the losses to write your own algorithm.

    L_pi = bc_weight |pi(s) - a|^2 / d_a  -  min_j Q_j(s, pi(s)) / E|q|                (actor_loss)
    L_Q  = mean_j (Q_j(s, a) - r - gamma m min_j Qbar_j(s', pi(s')))^2                 (parts.critic_loss)

python examples/new_algorithm.py                                         trains it for a few hundred updates
drol train --import new_algorithm --algorithm td3-bc --preset laptop     the same from the shell, in this folder

Every file of `drol.algorithms` has this order: state, hyperparameters, init, update, act, step, losses. `update` makes
the random draws and calls `step`, a deterministic function of (state, batch, draws). TD3+BC draws nothing.
"""

import tempfile
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

import drol
from drol.algorithms.parts import Trainable, clip, critic_loss, descend, polyak, q_scale, trainable
from drol.networks.actors import GaussianActor
from drol.networks.critics import QEnsemble
from drol.transition import Metrics


class State(eqx.Module):
    """All networks. Every leaf is an array; `policy` is the part that `act` needs and that is saved."""

    actor: Trainable[GaussianActor]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble

    @property
    def policy(self) -> GaussianActor:
        return self.actor.network


@drol.register_algorithm("td3-bc")
class TD3BC(drol.Algorithm):
    """A deterministic policy that climbs Q and stays near the data."""

    # Each field is a flag, a check and an entry of config.json. Floats may change without compiling again.
    bc_weight: float = drol.hyperparameter(0.4, "weight of behaviour cloning against a normalised Q", minimum=0)
    discount: float = drol.hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    target_rate: float = drol.hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = drol.hyperparameter(3e-4, "step size of Adam", minimum=0, maximum=1)
    batch_size: int = drol.hyperparameter(256, "transitions in one update", minimum=1)
    hidden_sizes: tuple[int, ...] = drol.hyperparameter((512, 512), "widths of the hidden layers", minimum=1)

    draws_actions: ClassVar = False  # the policy is deterministic
    presets: ClassVar = {"laptop": {"hidden_sizes": (128, 128), "learning_rate": 1e-3, "target_rate": 0.02}}

    def init(self, key: Array, spec: drol.Spec) -> State:
        actor_key, critic_key = jax.random.split(key)
        critic = QEnsemble(critic_key, spec, self.hidden_sizes)
        return State(trainable(GaussianActor(actor_key, spec, self.hidden_sizes)), trainable(critic), critic)

    def update(self, state: State, batch: drol.Transition, key: Array) -> tuple[State, Metrics]:  # noqa: ARG002
        return self.step(state, batch)

    def act(self, policy: GaussianActor, observation: Array, key: Array, best_of: int | None = None) -> Array:  # noqa: ARG002
        self.check_best_of(best_of)
        return jnp.tanh(policy(observation))

    def explore(self, policy: GaussianActor, observation: Array, key: Array) -> Array:
        action = jnp.tanh(policy(observation))
        return clip(action + 0.1 * jax.random.normal(key, action.shape))

    def step(self, state: State, batch: drol.Transition) -> tuple[State, Metrics]:
        """Make one update; every loss sees the networks from before it."""
        actor_before, critic_before = state.actor.network, state.critic.network
        next_action = jnp.tanh(actor_before(batch.next_observation))
        next_q = state.target_critic(batch.next_observation, next_action).min(0)
        target = batch.reward + self.discount * batch.continues * next_q
        actor, actor_metrics = descend(state.actor, self.learning_rate, self.actor_loss, critic_before, batch)
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        return State(actor, critic, target_critic), actor_metrics | critic_metrics

    def actor_loss(self, actor: GaussianActor, critic: QEnsemble, batch: drol.Transition) -> tuple[Array, Metrics]:
        action = jnp.tanh(actor(batch.observation))
        bc_loss = jnp.square(action - batch.action).mean()
        q = critic(batch.observation, action).min(0)
        loss = self.bc_weight * bc_loss - q_scale(q) * q.mean()
        return loss, {"actor_loss": loss, "bc_loss": bc_loss, "actor_q": q.mean()}


def main(folder: Path, steps: int = 300) -> drol.Run:
    """Train on the embedded maze, then open the run again as another program would."""
    intervals = {"log_interval": 100, "evaluation_interval": steps, "checkpoint_interval": steps}
    config = drol.settings(
        algorithm="td3-bc", preset="laptop", hidden_sizes=(32, 32), steps=steps, evaluation_episodes=2, **intervals
    )
    drol.train(config, folder, quiet=True)
    run = drol.open_run(folder)  # a class that is not registered: drol.open_run(folder, algorithm=TD3BC)
    print(f"{run}: scores {run.scores}, last actor loss {run.metrics[-1].values['actor_loss']:.3f}")
    return run


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name) / "run")
