"""The computation of an action as plain steps; an exported policy contains them, and a robot executes them without jax.

    x = z                                        a latent from the prior; none for a deterministic policy
    x = network([s, x, conditions])              a step replaces x,
    x = x + scale network([s, x, conditions])    or adds to x,
    x = clip x  or  x = tanh x                   or maps x into the action bounds;
    of N latents, the result is the x with the highest value by the critics.

`Algorithm.act` and `Algorithm.sampler` define the same computation; the contract tests compare them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from drol.errors import InputError
from drol.networks.encoders import NoEncoder
from drol.networks.mlp import MLP

PRIORS = ("none", "normal", "ball")  # of a latent as large as an action; the ball has the radius sqrt(action size)
AGGREGATIONS = ("mean", "min")
CLIP, TANH = "clip", "tanh"


@dataclass(frozen=True)
class Call:
    """One step through a network.

    Attributes:
        network: The name of the network.
        conditions: Its inputs after the state and x, such as the time of a flow.
        sees_action: Whether x is an input.
        scale: The factor of its output when this is added to x; None if the output replaces x.
    """

    network: str
    conditions: tuple[float, ...] = ()
    sees_action: bool = True
    scale: float | None = None


@dataclass(frozen=True)
class Sampler:
    """The computation of an action by a policy.

    Attributes:
        prior: The distribution of its latents, one of `PRIORS`.
        steps: Calls of networks, "clip" and "tanh", in order.
        networks: The networks by name.
        critics: The critics that choose among several draws; every array has the ensemble as its first axis.
        critic_conditions: Inputs of the critics after the state and the action.
        aggregation: How the values of the critics are reduced to one, one of `AGGREGATIONS`.
    """

    prior: str
    steps: tuple[Call | str, ...]
    networks: Mapping[str, MLP]
    critics: MLP | None = None
    critic_conditions: tuple[float, ...] = ()
    aggregation: str = "mean"
    action_size: int = field(init=False)

    def __post_init__(self) -> None:
        last = next(step for step in reversed(self.steps) if isinstance(step, Call))
        object.__setattr__(self, "action_size", self.networks[last.network].layers[-1].bias.shape[-1])

    def draw_latents(self, key: Array, count: int) -> Array:
        """Draw latents [count, action] as `Algorithm.act` draws them with this key; zeros if the prior is "none"."""
        normal = jax.random.normal(key, (count, self.action_size + (2 if self.prior == "ball" else 0)))
        if self.prior == "normal":
            return normal
        if self.prior == "none":
            return jnp.zeros((count, self.action_size))
        length = jnp.sqrt(jnp.square(normal).sum(-1, keepdims=True))
        return jnp.sqrt(float(self.action_size)) * normal[:, : self.action_size] / length

    def act(self, state: Array, latent: Array) -> Array:
        """Return the action [action] for one standardised observation, given its latents [count, action]."""
        x = latent
        rows = jnp.broadcast_to(state, (len(latent), len(state)))
        for step in self.steps:
            if isinstance(step, Call):
                seen = [rows, *([x] if step.sees_action else []), constants(step.conditions, len(latent))]
                output = self.networks[step.network](jnp.concatenate(seen, -1))
                x = output if step.scale is None else x + step.scale * output
            else:
                x = jnp.clip(x, -1.0, 1.0) if step == CLIP else jnp.tanh(x)
        if len(latent) == 1 or self.critics is None:
            return x[0]
        seen = jnp.concatenate([rows, x, constants(self.critic_conditions, len(latent))], -1)
        values = jax.vmap(lambda member: member(seen))(self.critics)[..., 0]  # [ensemble, count]
        return x[(values.min(0) if self.aggregation == "min" else values.mean(0)).argmax()]


def constants(values: Sequence[float], rows: int) -> Array:
    return jnp.broadcast_to(jnp.asarray(values, jnp.float32), (rows, len(values)))


def network_of(part: Any) -> MLP:
    """Return the network of an actor, a field or critics; raise an error for networks on images."""
    if not isinstance(part.encoder, NoEncoder):
        raise InputError("a policy that sees images cannot be exported; only observations that are vectors can")
    return part.members if hasattr(part, "members") else part.network


def mean_sampler(actor: Any, squash: str = CLIP) -> Sampler:
    """Return the sampler of a policy that has one action for each state."""
    return Sampler("none", (Call("actor", sees_action=False), squash), {"actor": network_of(actor)})


def latent_sampler(actor: Any, critic: Any, prior: str, aggregation: str = "mean") -> Sampler:
    """Return the sampler of a one-step actor `clip f(s, z)`."""
    return Sampler(prior, (Call("actor"), CLIP), {"actor": network_of(actor)}, network_of(critic), (), aggregation)


def flow_sampler(
    field: Any, critic: Any, steps: int, conditions: Sequence[float] = (), aggregation: str = "mean"
) -> Sampler:
    """Return the sampler of a flow of Euler steps; the conditions of a step are its time and these conditions."""
    calls = tuple(Call("flow", (number / steps, *conditions), scale=1 / steps) for number in range(steps))
    return Sampler("normal", (*calls, CLIP), {"flow": network_of(field)}, network_of(critic), (), aggregation)
