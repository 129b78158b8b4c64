"""Record everything besides the settings that can change the last bits of a run's result."""

import importlib.metadata
import platform
from typing import Any

import jax

from drol.compiling import compiler_options
from drol.machine import available_cores

PACKAGES = ("drol", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco", "ogbench")


def circumstances() -> dict[str, Any]:
    """Return the package versions, the number of cores, the device and the active compiler options."""
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
        "compiler_options": compiler_options(),
    }
