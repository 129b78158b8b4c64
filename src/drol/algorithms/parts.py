"""Pure functions and values that several algorithms share."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from drol.networks.actors import VectorField
from drol.networks.critics import QEnsemble, ValueFunction
from drol.transition import Metrics, Transition

Network = TypeVar("Network", bound=Any)

ADAM = optax.scale_by_adam()  # betas 0.9 and 0.999, epsilon 1e-8; no decay, no clipping


class Trainable(eqx.Module, Generic[Network]):
    """A network and the state of its optimiser."""

    network: Network
    optimiser: Any


def trainable(network: Network) -> Trainable[Network]:
    """Return a network with the initial state of its optimiser."""
    return Trainable(network, ADAM.init(network))


def descend(
    trained: Trainable[Network],
    learning_rate: float | Array,
    loss: Callable[..., tuple[Array, Metrics]],
    *arguments: Any,
) -> tuple[Trainable[Network], Metrics]:
    """Take one Adam step down the gradient of `loss(network, *arguments)` with respect to the network."""
    gradient, metrics = jax.grad(loss, has_aux=True)(trained.network, *arguments)
    return adam_step(trained, gradient, learning_rate), metrics


def adam_step(trained: Trainable[Network], gradient: Network, learning_rate: float | Array) -> Trainable[Network]:
    """Take one Adam step down a gradient."""
    direction, optimiser = ADAM.update(gradient, trained.optimiser)
    network = jax.tree.map(lambda old, step: old - learning_rate * step, trained.network, direction)
    return Trainable(network, optimiser)


def hold_part(
    new: Trainable[Network], old: Trainable[Network], name: str, held: bool | Array = True
) -> Trainable[Network]:
    """Return `new`; if `held`, one of its networks and the Adam moments of that network are taken from `old`.

    All networks share Adam's step count, so it always advances.
    """

    def part(tree: Trainable[Network]) -> tuple:
        return getattr(tree.network, name), getattr(tree.optimiser.mu, name), getattr(tree.optimiser.nu, name)

    chosen = jax.tree.map(lambda new, old: jnp.where(held, old, new), part(new), part(old))
    return eqx.tree_at(part, new, chosen)


def polyak(online: Network, target: Network, rate: float | Array) -> Network:
    """Return the target network, moved by the fraction `rate` of the way to the online network."""
    return jax.tree.map(lambda new, old: rate * new + (1 - rate) * old, online, target)


def clip(action: Array) -> Array:
    """Clip an action to [-1, 1]; the derivative is 1 inside and 0 outside."""
    return jnp.clip(action, -1.0, 1.0)


def aggregate(values: Array, how: str) -> Array:
    """Reduce the values of an ensemble [ensemble, ...] to one value: their mean, minimum, or lower bound.

    The lower bound ("lcb") is the mean minus half a standard deviation.
    """
    if how == "lcb":
        return values.mean(0) - 0.5 * values.std(0)
    return values.min(0) if how == "min" else values.mean(0)


def uniform_in_ball(key: Array, shape: tuple[int, ...], radius: float) -> Array:
    """Draw points uniformly from a ball; the last axis of `shape` is its dimension d.

    The first d coordinates of a point that is uniform on the sphere in d + 2 dimensions are uniform in the ball, so one
    normal draw is enough.
    """
    *rows, dimension = shape
    normal = jax.random.normal(key, (*rows, dimension + 2))
    length = jnp.sqrt(jnp.square(normal).sum(-1, keepdims=True))
    return radius * normal[..., :dimension] / length


def q_scale(q: Array) -> Array:
    """Return `1 / E|q|` without a gradient: it makes the weight of a Q term independent of the size of rewards."""
    return 1 / jnp.maximum(jnp.abs(jax.lax.stop_gradient(q)).mean(), 1e-6)


def critic_loss(critic: QEnsemble, batch: Transition, target: Array) -> tuple[Array, Metrics]:
    """Return `E mean_j (Q_j(s, a) - y)^2` and its metrics."""
    q = critic(batch.observation, batch.action)  # [ensemble, batch]
    loss = jnp.square(q - target).mean()
    return loss, {"critic_loss": loss, "data_q": q.mean()}


def best_action(
    critic: QEnsemble, observation: Array, actions: Array, *conditions: Array | float, how: str = "mean"
) -> Array:
    """Return the action with the highest value among several actions [N, action] for one observation."""
    if len(actions) == 1:
        return actions[0]
    return actions[aggregate(critic(observation, actions, *conditions), how).argmax()]


class FlowDraws(eqx.Module):
    """All randomness of one update of a method with a flow policy."""

    flow_noise: Array  # x_0 of flow matching, [batch, action]
    flow_time: Array  # t of flow matching, [batch, 1]
    noise: Array  # z of the policy's action, [batch, action]
    next_noise: Array  # z' of the policy's next action, [batch, action]


def draw_flow(batch: Transition, key: Array) -> FlowDraws:
    """Draw the noises and times of one update."""
    flow_key, time_key, noise_key, next_key = jax.random.split(key, 4)
    shape = batch.action.shape
    return FlowDraws(
        flow_noise=jax.random.normal(flow_key, shape),
        flow_time=jax.random.uniform(time_key, (shape[0], 1)),
        noise=jax.random.normal(noise_key, shape),
        next_noise=jax.random.normal(next_key, shape),
    )


def flow_action(field: VectorField, observation: Array, noise: Array, steps: int) -> Array:
    """Integrate a field from noise to an action by Euler steps `x <- x + v(s, x, i/n)/n`, and clip the result."""
    features = field.encoder(observation)

    def euler(x: Array, time: Array) -> tuple[Array, None]:
        return x + field.velocity(features, x, time) / steps, None

    return clip(jax.lax.scan(euler, noise, jnp.arange(steps) / steps)[0])


def flow_matching_error(field: VectorField, batch: Transition, noise: Array, time: Array) -> Array:
    """Return the squared error [batch, action] of the velocity between noise (time 0) and the action (time 1)."""
    x = (1 - time) * noise + time * batch.action
    return jnp.square(field(batch.observation, x, time) - (batch.action - noise))


def flow_matching_loss(field: VectorField, batch: Transition, noise: Array, time: Array) -> tuple[Array, Metrics]:
    """Return `E |v(s, x_t, t) - (a - x_0)|^2 / d_a` and its metrics."""
    loss = flow_matching_error(field, batch, noise, time).mean()
    return loss, {"flow_loss": loss}


def expectile_loss(
    value: ValueFunction, target_critic: QEnsemble, batch: Transition, expectile: float | Array
) -> tuple[Array, Metrics]:
    """Return `E w (q - V(s))^2`, `q = min_j Qbar_j(s, a)`: w is kappa if q >= V, else 1 - kappa."""
    q = target_critic(batch.observation, batch.action).min(0)
    v = value(batch.observation)
    weight = jnp.where(q >= v, expectile, 1 - expectile)
    loss = (weight * jnp.square(q - v)).mean()
    return loss, {"value_loss": loss, "value": v.mean()}


def summed_critic_loss(critic: QEnsemble, batch: Transition, target: Array) -> tuple[Array, Metrics]:
    """Return `E sum_j (Q_j(s, a) - y)^2`; the implicit methods sum over the critics, the other methods average."""
    q = critic(batch.observation, batch.action)  # [ensemble, batch]
    loss = jnp.square(q - target).sum(0).mean()
    return loss, {"critic_loss": loss, "data_q": q.mean()}


def gaussian_log_density(mean: Array, action: Array) -> Array:
    """Return the log density [batch] of actions under a Gaussian of standard deviation 1."""
    return -0.5 * (jnp.square(action - mean).sum(-1) + action.shape[-1] * jnp.log(2 * jnp.pi))
