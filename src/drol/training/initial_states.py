"""Load the initial states of a run from another run."""

import logging
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms import algorithm_name
from drol.checkpoints import STEP, DamagedCheckpoint, load_tree, saved_steps, step_name
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.policy import Policy
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.runs.run import open_run
from drol.tasks.base import Task

logger = logging.getLogger(__name__)


def states_of_another_run(
    config: RunConfig, like: Any, standardisation: Standardisation, task: Task
) -> tuple[Any, list[str]]:
    """Load the states [seed, ...] of the run in `config.start_from`: networks, targets and optimisers.

    A seed starts from the same seed of the other run. If the other run has only one seed, all seeds start from it.

    Args:
        config: The settings of the run that starts.
        like: Its states, or their shapes; the other run must have the same shapes.
        standardisation: Its standardisation; the other run must have the same.
        task: Its task; the other run must have the same action bounds.

    Returns:
        The states, and a sentence for each newer checkpoint that is damaged or does not fit.
    """
    path = Path(config.start_from or "")
    chosen = int(path.name) if path.parent.name == "checkpoints" and STEP.fullmatch(path.name) else None
    directory = RunDirectory(path if chosen is None else path.parent.parent)
    values = directory.read_config()["run"]
    wanted = algorithm_name(config.algorithm)
    if values["algorithm"]["name"] != wanted:
        raise InputError(f"cannot start {wanted} from {path}, a run of {values['algorithm']['name']}; both must be one")
    other = open_run(directory.path, type(config.algorithm))
    check_same_inputs(path, other.policy(), standardisation, task)
    seeds = other.config.seeds
    missing = [seed for seed in config.seeds if seed not in seeds]
    if missing and len(seeds) > 1:
        raise InputError(f"{path} has seeds {' '.join(map(str, seeds))} and not {missing[0]}; choose seeds of these")
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((len(seeds), *leaf.shape[1:]), leaf.dtype), like)
    rows = jnp.asarray([seeds.index(seed) if seed in seeds else 0 for seed in config.seeds])
    skipped = []
    steps = saved_steps(directory.checkpoints) if chosen is None else [chosen]
    for step in reversed(steps):
        try:
            saved = load_tree(directory.checkpoints / step_name(step), {"states": shapes}, False, True)["states"]
        except DamagedCheckpoint as error:
            skipped.append(f"the checkpoint of step {step} does not fit: {error}")
            continue
        logger.info(f"starting from step {step:,} of {directory.path}")
        return jax.tree.map(lambda leaf: leaf[rows], saved), skipped
    raise InputError(f"cannot start from {path}; {skipped[0] if skipped else 'it has no checkpoint'}")


def check_same_inputs(path: Path, policy: Policy, standardisation: Standardisation, task: Task) -> None:
    """Raise `InputError` if the policy was trained on observations or actions of another shape or scale."""
    theirs, ours = policy.standardisation.mean.shape, standardisation.mean.shape
    if theirs != ours:
        raise InputError(f"observations of {path} have shape {list(theirs)}; those of {task.name} have {list(ours)}")
    if not jax.tree.all(jax.tree.map(np.array_equal, policy.standardisation, standardisation)):
        raise InputError(
            f"the observations of {path} have another standardisation; use its standardise_observations, "
            "observation_scale and data, or train it without standardising"
        )
    for what in ("observation", "action"):
        theirs, ours = (getattr(each, f"{what}_dimensions") for each in (policy, task))
        if theirs and ours and theirs.names != ours.names:
            there, here = (", ".join(each.names)[:80] for each in (theirs, ours))
            raise InputError(
                f"the {what} of {path} is {there}; that of {task.name} is {here}: the order must be the same"
            )
    if policy.action_box != task.action_box:
        raise InputError(f"the actions of {path} are scaled from another box; it must be that of {task.name}")
