"""Make environments. Nothing here imports jax, so the processes that step them start quickly and stay small."""

import tempfile
from typing import Any


def make_ogbench(environment_name: str) -> Any:
    """The environment of an OGBench id; the model file that a maze writes on the way is removed."""
    import gymnasium
    import ogbench  # noqa: F401 (registers the environments)

    previous = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            return gymnasium.make(environment_name, disable_env_checker=True)
        finally:
            tempfile.tempdir = previous
