"""What besides its configuration can change the last bits of a run's result."""

import importlib.metadata
import os
import platform
from typing import Any

import jax

PACKAGES = ("drol", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco", "ogbench")


def available_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def circumstances() -> dict[str, Any]:
    """Versions, the number of cores and the device."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        **versions,
        "cores": available_cores(),
        "device": f"{device.platform}: {device.device_kind}",
    }
