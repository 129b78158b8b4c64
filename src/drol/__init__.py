"""Offline reinforcement learning in JAX: a fixed dataset in, a fast, multimodal, one-step policy out."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drol.algorithms import ALGORITHMS, Algorithm
    from drol.algorithms.drol import DROL
    from drol.data.dataset import Dataset
    from drol.data.store.episode_writer import EpisodeWriter
    from drol.errors import InputError
    from drol.policy import Policy
    from drol.runs.config import RunConfig
    from drol.tasks import load_task
    from drol.tasks.base import Task
    from drol.training.trainer import train
    from drol.types import Spec, Transition

__version__ = "0.1.0"

# Where each public name lives; it is imported when it is first used, so that `drol --help` does not wait for jax.
PUBLIC = {
    "ALGORITHMS": "drol.algorithms",
    "Algorithm": "drol.algorithms",
    "DROL": "drol.algorithms.drol",
    "Dataset": "drol.data.dataset",
    "EpisodeWriter": "drol.data.store.episode_writer",
    "InputError": "drol.errors",
    "Policy": "drol.policy",
    "RunConfig": "drol.runs.config",
    "Spec": "drol.types",
    "Task": "drol.tasks.base",
    "Transition": "drol.types",
    "load_task": "drol.tasks",
    "train": "drol.training.trainer",
}

__all__ = [
    "ALGORITHMS",
    "DROL",
    "Algorithm",
    "Dataset",
    "EpisodeWriter",
    "InputError",
    "Policy",
    "RunConfig",
    "Spec",
    "Task",
    "Transition",
    "load_task",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'drol' has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)
