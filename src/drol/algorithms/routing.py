"""Routing: an actor has K candidates for each state, and a data action trains only the nearest of them.

    z_k ~ Unif(ball of radius sqrt(d_a)),  k* = argmin_k |c_k - a|^2

drol.py (the code of the authors) and drol_equation.py (the printed equation) share this; each defines its own c_k.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.parts import uniform_in_ball
from drol.transition import Metrics, Transition


class Draws(eqx.Module):
    """All randomness of one update."""

    latent: Array  # z, [batch, K, action]
    next_latent: Array  # z', [batch, action]


def draw_latents(key: Array, shape: tuple[int, ...]) -> Array:
    """Draw latents [..., d_a] uniformly from the ball of radius sqrt(d_a)."""
    return uniform_in_ball(key, shape, math.sqrt(shape[-1]))


def draw_for_update(batch: Transition, num_candidates: int, key: Array) -> Draws:
    """Draw K latents for each state of a batch, and one for each next state."""
    latent_key, next_latent_key = jax.random.split(key)
    batch_size, action_size = batch.action.shape
    return Draws(
        latent=draw_latents(latent_key, (batch_size, num_candidates, action_size)),
        next_latent=draw_latents(next_latent_key, (batch_size, action_size)),
    )


def nearest_latent(candidates: Array, latent: Array, action: Array) -> Array:
    """Return the latent [batch, action] whose candidate [batch, K, action] is nearest to each data action."""
    distance = jnp.square(candidates - action[:, None]).sum(-1)  # [batch, K]
    winner = distance.argmin(-1)  # the lowest index if several are equally near
    return jnp.take_along_axis(latent, winner[:, None, None], 1)[:, 0]


def candidate_diagnostics(candidates: Array, action: Array) -> Metrics:
    """Return the errors and the spread of clipped candidates [batch, K, action], and how evenly they win.

    docs/algorithms.md defines each metric under "Diagnostics".
    """
    squared_error = jnp.square(candidates - action[:, None]).mean(-1)  # [batch, K]
    centre = candidates.mean(1, keepdims=True)
    divergence = jnp.square(candidates - centre).mean()
    count = candidates.shape[1]
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
