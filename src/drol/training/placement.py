"""Choose where updates run: on one device, or on several devices of this machine.

On one CPU each seed has its own arrays and a call in its own thread, because the matrix products of one seed do not
use all cores (docs/performance.md has the measurement). On one GPU all seeds are one program.

On several devices, each device trains its share of the seeds. If the number of devices does not divide the number of
seeds, every batch is split: each device computes the losses of its rows, and the compiler adds the gradients. Results
differ only by rounding.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from drol.errors import InputError, counted

AXIS = "devices"


@dataclass(frozen=True)
class Placement:
    """The devices of a run, and whether its seeds or the rows of each batch are spread over them."""

    mesh: Mesh | None = None  # None: one device
    spread: Literal["nothing", "seeds", "batch", "threads"] = "nothing"

    def __str__(self) -> str:
        if self.mesh:
            return f"{self.spread} over {self.mesh.size} devices"
        return "a thread for each seed" if self.spread == "threads" else "one device"

    @property
    def batch_sharding(self) -> NamedSharding | None:
        """The sharding of the rows of a batch; None if batches are not split."""
        return NamedSharding(self.mesh, PartitionSpec(AXIS)) if self.mesh and self.spread == "batch" else None

    def put_seeds(self, tree: Any) -> Any:
        """Put arrays [seed, ...] on the devices; for threads, return a list with the arrays of each seed."""
        if self.spread == "threads":
            count = len(jax.tree.leaves(tree)[0])
            return [jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], tree) for i in range(count)]
        return self.put(tree, PartitionSpec(AXIS) if self.spread == "seeds" else PartitionSpec())

    def put_everywhere(self, tree: Any) -> Any:
        """Put a complete copy of the arrays on every device."""
        return self.put(tree, PartitionSpec())

    def put_batches(self, tree: Any) -> Any:
        """Put batches [seed, number, row, ...] from the host on the devices."""
        if self.spread == "threads":
            return self.put_seeds(tree)
        return self.put(tree, PartitionSpec(AXIS) if self.spread == "seeds" else PartitionSpec(None, None, AXIS))

    def put(self, tree: Any, spec: PartitionSpec) -> Any:
        if self.mesh is None:
            return tree
        sharding = NamedSharding(self.mesh, spec)
        return jax.tree.map(lambda leaf: put_array(leaf, sharding), tree)

    def gather(self, tree: Any) -> Any:
        """Return arrays [seed, ...] from the form that `put_seeds` returns."""
        if self.spread == "threads":
            return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *tree)
        return tree if self.mesh is None else jax.tree.map(np.asarray, tree)


ONE_DEVICE = Placement()


def put_array(leaf: Any, sharding: NamedSharding) -> Array:
    """Put an array on several devices; each device gets its part."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(put_array(jax.random.key_data(leaf), sharding))
    values = np.asarray(leaf)
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def place(seeds: int, batch_size: int, devices: int | None = None) -> Placement:
    """Choose the placement of a run on `devices` devices; all if None."""
    available = jax.devices()
    count = len(available) if devices is None else devices
    if not 1 <= count <= len(available):
        raise InputError(f"devices is {count}; this machine has {counted(len(available), 'device')}")
    if count == 1:
        return Placement(spread="threads") if seeds > 1 and available[0].platform == "cpu" else ONE_DEVICE
    mesh = Mesh(np.asarray(available[:count]), (AXIS,))
    if seeds % count == 0:
        return Placement(mesh, "seeds")
    if batch_size % count == 0:
        return Placement(mesh, "batch")
    usable = math.gcd(count, batch_size)
    raise InputError(
        f"{count} devices divide neither {seeds} seeds nor a batch of {batch_size}; give devices {usable}, "
        f"or a batch_size that {count} divides"
    )
