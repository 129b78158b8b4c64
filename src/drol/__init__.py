"""Offline reinforcement learning in JAX: a fixed dataset in, a fast one-step policy out."""

# ruff: noqa: F401 (the names in the first block are for type checkers)

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; MODULES below repeats it for Python
    from drol.algorithms import (
        ALGORITHMS,
        BC,
        BFN,
        DROL,
        FAWAC,
        FBRAC,
        FQL,
        GFP,
        IFQL,
        IQL,
        SORL,
        Algorithm,
        DeFlow,
        DriftQL,
        DROLChoice,
        DROLControl,
        DROLEquation,
        ReBRAC,
        register_algorithm,
    )
    from drol.algorithms.base import hyperparameter
    from drol.data.dataset import Dataset
    from drol.data.dimensions import Dimensions
    from drol.data.importing.episode_writer import EpisodeWriter
    from drol.errors import InputError
    from drol.evaluation.evaluate_run import evaluate, evaluate_offline
    from drol.export.export import export_policy
    from drol.installation import doctor
    from drol.policy import Policy
    from drol.presets.settings import settings
    from drol.reports.report import report
    from drol.results.choose import choose
    from drol.results.collect import collect_results
    from drol.results.compare import compare
    from drol.results.offline_comparison import compare_offline
    from drol.runs.config import RunConfig
    from drol.runs.run import Run, load_policy, open_run
    from drol.tasks import load_task, register_task_source
    from drol.tasks.base import Episode, Task, task_from
    from drol.tasks.source import TaskSource
    from drol.training.train import train
    from drol.transition import Spec, Transition

__version__ = "0.1.0"

# The modules of the public names. A name is imported at its first use, so that `drol --help` does not import jax.
MODULES = {
    "drol.algorithms": (
        "ALGORITHMS", "Algorithm", "BC", "BFN", "DROL", "DROLChoice", "DROLControl", "DROLEquation",
        "DeFlow", "DriftQL", "FAWAC", "FBRAC", "FQL", "GFP", "IFQL", "IQL", "ReBRAC", "SORL", "register_algorithm",
    ),
    "drol.algorithms.base": ("hyperparameter",),
    "drol.data.dataset": ("Dataset",),
    "drol.data.dimensions": ("Dimensions",),
    "drol.data.importing.episode_writer": ("EpisodeWriter",),
    "drol.errors": ("InputError",),
    "drol.evaluation.evaluate_run": ("evaluate", "evaluate_offline"),
    "drol.results.choose": ("choose",),
    "drol.results.compare": ("compare",),
    "drol.results.offline_comparison": ("compare_offline",),
    "drol.installation": ("doctor",),
    "drol.reports.report": ("report",),
    "drol.results.collect": ("collect_results",),
    "drol.export.export": ("export_policy",),
    "drol.presets.settings": ("settings",),
    "drol.policy": ("Policy",),
    "drol.runs.config": ("RunConfig",),
    "drol.runs.run": ("Run", "load_policy", "open_run"),
    "drol.tasks": ("load_task", "register_task_source"),
    "drol.tasks.base": ("Episode", "Task", "task_from"),
    "drol.tasks.source": ("TaskSource",),
    "drol.training.train": ("train",),
    "drol.transition": ("Spec", "Transition"),
}  # fmt: skip
PUBLIC = {name: module for module, names in MODULES.items() for name in names}

__all__ = sorted(PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'drol' has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
