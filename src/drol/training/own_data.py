"""Choose networks, number of updates and discount for a run on the user's own data.

The choice depends on the size of the data and on the measured speed of the machine. The chosen values become settings
of the run; a resumed run keeps its first choice.
"""

import dataclasses
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from drol.algorithms import algorithm_name
from drol.data.trajectories import LARGEST, trajectories_of
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.tasks.base import Task
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.placement import place
from drol.training.updates import DIAGNOSED, Updates

METHOD = "drol-choice"  # this algorithm has no weight to tune
RUN: Mapping[str, Any] = {"standardise_observations": True}  # own data has arbitrary units
RATES: Mapping[str, Any] = {"learning_rate": 1e-3, "target_rate": 0.02}  # for runs of at most 200,000 updates
BUDGET = 1800.0  # seconds that a run may take
LEAST_UPDATES, MOST_UPDATES = 20_000, 200_000  # within these limits, there is one update for each transition
LONG_EPISODE, LONG_DISCOUNT = 500, 0.995  # the discount where trajectories are typically longer than 500 transitions
TIMED = 0.5  # least duration of the timed updates, in seconds
CHOSEN = ("hidden_sizes", "discount", "steps", "log_interval", "evaluation_interval", "checkpoint_interval")


@dataclass(frozen=True)
class Networks:
    """Networks, and the conditions to choose them.

    Attributes:
        hidden_sizes: The hidden layers; None keeps the hidden layers of the algorithm.
        transitions: The smallest number of transitions that the data must have.
        updates: The smallest number of updates that must fit into the budget.
    """

    hidden_sizes: tuple[int, ...] | None
    transitions: int = 0
    updates: int = 0


NETWORKS = (
    Networks((512,) * 4, 300_000, 100_000),
    Networks((256,) * 3, 20_000, LEAST_UPDATES),
    Networks((128,) * 3),
)


@dataclass(frozen=True)
class Choice:
    """The settings of a run on own data, and one line that explains them."""

    config: RunConfig
    words: str


def choose_settings(
    config: RunConfig,
    given: Collection[str],
    task: Task,
    folder: Path | str | None = None,
    devices: int | None = None,
    budget: float = BUDGET,
) -> Choice:
    """Return settings with the networks, the number of updates and the discount that suit the data and the machine.

    Args:
        config: The settings before the choice.
        given: Names of the settings that the user gave; they stay as they are.
        task: The task with its data.
        folder: The folder of the run. A run that exists there keeps the values that were chosen for it.
        devices: Number of devices to train on; all if None.
        budget: Seconds that the run may take.
    """
    began = earlier_values(config, folder)
    if began is not None:
        values = {name: began[name] for name in CHOSEN if name in began and name not in given}
        chosen = changed(config, values)
        return Choice(chosen, describe(chosen, given, f"as the run in {folder} began"))
    if "discount" in config.algorithm.to_dict() and "discount" not in given and has_long_trajectories(task):
        config = changed(config, {"discount": LONG_DISCOUNT})
    seconds = None
    if "steps" not in given or networks_are_open(config, given):
        config, seconds = fit(config, given, task, devices, budget)
    config = changed(config, {name: n for name, n in intervals(config.steps).items() if name not in given})
    return Choice(config, describe(config, given, f"chosen from {task.train.size:,} transitions", seconds))


def earlier_values(config: RunConfig, folder: Path | str | None) -> dict[str, Any] | None:
    """Return the settings of the run in a folder; None if the folder has no run of this method and task."""
    directory = RunDirectory(Path(folder)) if folder is not None else None
    if directory is None or not directory.exists:
        return None
    values = dict(directory.read_config()["run"])
    algorithm = values.pop("algorithm")
    if (values["task"], algorithm["name"]) != (config.task, algorithm_name(config.algorithm)):
        return None
    return {name: tuple(value) if isinstance(value, list) else value for name, value in (algorithm | values).items()}


def has_long_trajectories(task: Task) -> bool:
    """Return whether the median trajectory is too long for a discount of 0.99 to see its end."""
    return float(np.median(trajectories_of(task.train.leading(LARGEST)).length)) > LONG_EPISODE


def networks_are_open(config: RunConfig, given: Collection[str]) -> bool:
    return "hidden_sizes" in config.algorithm.to_dict() and "hidden_sizes" not in given


def fit(
    config: RunConfig, given: Collection[str], task: Task, devices: int | None, budget: float
) -> tuple[RunConfig, float]:
    """Return settings with the largest networks that get enough updates within the budget, and the training seconds.

    If no networks get enough updates, the smallest are chosen.
    """
    wanted = config.steps if "steps" in given else min(max(task.train.size, LEAST_UPDATES), MOST_UPDATES)
    choices = open_networks(task) if networks_are_open(config, given) else [Networks(None)]
    for networks in choices:
        if networks.hidden_sizes is not None:
            config = changed(config, {"hidden_sizes": networks.hidden_sizes})
        seconds = seconds_per_update(config, task, devices)
        affordable = int(budget / seconds)
        if affordable >= min(networks.updates, wanted) or networks is choices[-1]:
            break
    steps = wanted if "steps" in given else rounded_down(min(wanted, max(affordable, 1)))
    return changed(config, {"steps": steps}), steps * seconds


def open_networks(task: Task) -> list[Networks]:
    """Return the networks that may be chosen for the data of a task, the largest first."""
    return [each for each in NETWORKS if task.train.size >= each.transitions]


def seconds_per_update(config: RunConfig, task: Task, devices: int | None = None) -> float:
    """Measure the seconds of one update of all seeds on this machine; the training reuses the compiled program."""
    algorithm, keys = config.algorithm, seed_keys(config.seeds)
    placement = place(len(config.seeds), algorithm.batch_size, devices)
    updates = Updates(algorithm, task.train.some(DIAGNOSED), keys, 1, placement)
    states = init_seeds(algorithm, keys, task.train.spec)
    totals = placement.put_seeds(zero_totals(algorithm, states, updates.diagnosed, keys))
    states, totals = updates.run(placement.put_seeds(states), totals, 1, 1)
    done, count, seconds = 1, 4, 0.0
    while seconds < TIMED:
        count *= 2
        start = time.monotonic()
        states, totals = jax.block_until_ready(updates.run(states, totals, done + 1, done + count))
        seconds, done = time.monotonic() - start, done + count
    return seconds / count


def changed(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """Return settings with changed values, of the run or of its algorithm."""
    own = {field.name for field in dataclasses.fields(config.algorithm)}
    algorithm = dataclasses.replace(config.algorithm, **{name: values[name] for name in values if name in own})
    return dataclasses.replace(config, algorithm=algorithm, **{n: values[n] for n in values if n not in own})


def intervals(steps: int) -> dict[str, int]:
    """Return the intervals of a run for 20 rows of metrics, 5 evaluations and 10 checkpoints."""
    counts = {"log_interval": 20, "evaluation_interval": 5, "checkpoint_interval": 10}
    return {name: max(1, steps // count) for name, count in counts.items()}


def rounded_down(count: int) -> int:
    """Return an integer rounded down to two significant digits."""
    unit = 10 ** max(0, len(str(count)) - 2)
    return count // unit * unit


def describe(config: RunConfig, given: Collection[str], why: str, seconds: float | None = None) -> str:
    """Return the chosen settings in one line, and the flags that override them."""
    return f"{', '.join(chosen_parts(config, seconds))}: {why}; override with {flags(config, given)}"


def chosen_parts(config: RunConfig, seconds: float | None) -> Iterator[str]:
    values = config.algorithm.to_dict()
    yield f"method {algorithm_name(config.algorithm)}"
    if values.get("hidden_sizes"):
        yield f"networks {network_words(values['hidden_sizes'])}"
    if values.get("discount") == LONG_DISCOUNT:
        yield f"discount {LONG_DISCOUNT:g}"
    yield f"{config.steps:,} updates" + ("" if seconds is None else f" ({time_words(seconds)} here)")


def network_words(hidden_sizes: tuple[int, ...]) -> str:
    """Return hidden layers as 3x256 where they are equal, else their widths."""
    alike = len(set(hidden_sizes)) == 1
    return f"{len(hidden_sizes)}x{hidden_sizes[0]}" if alike else "-".join(map(str, hidden_sizes))


def time_words(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes} minutes" if minutes > 1 else "about a minute"


def flags(config: RunConfig, given: Collection[str]) -> str:
    names = ["--algorithm", *(["--hidden-sizes"] if networks_are_open(config, given) else [])]
    return ", ".join([*names, *(["--steps"] if "steps" not in given else [])])
