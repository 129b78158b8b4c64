"""Write a policy as StableHLO, for XLA; it maps a batch of observations and latents, of any size, to actions."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from drol.export.bundle import Example
from drol.policy import Policy
from drol.storage import write_synced

FILE = "policy.stablehlo"
PLATFORMS = ("cpu", "cuda", "tpu")


def write(folder: Path, policy: Policy, example: Example) -> None:
    """Write the policy for CPUs, GPUs and TPUs; StableHLO guarantees compatibility only for some months."""
    sampler = policy.algorithm.sampler(policy.networks)
    box = policy.action_box

    def act(observation: jax.Array, latent: jax.Array) -> jax.Array:
        action = jax.vmap(lambda seen, drawn: sampler.act(policy.standardisation(seen), drawn))(observation, latent)
        return action if box is None else action * jnp.float32(box.half) + jnp.float32(box.centre)

    (batch,) = jax.export.symbolic_shape("batch")
    arguments = [
        jax.ShapeDtypeStruct((batch, *array.shape[1:]), jnp.float32) for array in (example.observation, example.latent)
    ]
    exported = jax.export.export(jax.jit(act), platforms=PLATFORMS)(*arguments)
    write_synced(folder / FILE, bytes(exported.serialize()))


def load(folder: Path) -> Callable[..., np.ndarray]:
    """Return the written policy as a function of observations and latents."""
    exported = jax.export.deserialize(bytearray((folder / FILE).read_bytes()))
    return lambda observation, latent: np.asarray(exported.call(observation, latent))
