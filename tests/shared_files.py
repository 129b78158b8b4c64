"""Files beside the project that are too large, or not ours, to be distributed with it."""

import os
from pathlib import Path

import pytest

# `DROL_SHARED` names the folder; without it, it is looked for beside the repository.
SHARED = Path(os.environ.get("DROL_SHARED") or Path(__file__).parents[2] / "shared")


def shared(path: str) -> Path:
    """Return a shared file or folder, or skip the test if it is not here."""
    if not (SHARED / path).exists():
        pytest.skip(f"{path} is not distributed with this project; $DROL_SHARED names a folder that has it")
    return SHARED / path


def expert_weights(name: str) -> Path:
    """Return the weights of a policy that made D4RL's files, or skip the test if they are not here."""
    return shared(f"data/experts/{name}.npz")
