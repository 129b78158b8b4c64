"""The settings of a run."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.bounds import bounds, check_field
from drol.data.images import CROP_PROBABILITY, FRAME_STACK
from drol.errors import InputError, unknown_name
from drol.tasks import DEFAULT_TASK, load_task
from drol.tasks.base import Task

GROWING = ("steps", "online_steps")  # settings that may grow when a run resumes
MOST_STEPS = 10**12
MOST_SEEDS = 2**32 - 1


def setting(default: Any, description: str, *limits: float, choices: tuple[str, ...] | None = None) -> Any:
    """Return a field of `RunConfig` with its default, the help text of its flag, and its limits or choices."""
    return dataclasses.field(default=default, metadata=bounds(description, *limits, choices=choices))


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run: the algorithm with its hyperparameters, the task, the seeds and the intervals.

    `drol.settings` makes one from a preset. Invalid values raise `InputError`.

    Args:
        algorithm: An algorithm with its hyperparameters, such as `drol.DROL(bc_weight=0.3)`.
        task: The name of a task of `drol data list --all`.
        seeds: Seeds, trained together; each gives a separate policy.
        steps: Updates of each seed.
        online_steps: Further updates of each seed, each after one step in the environment.
        online_data: Batches of online updates: "keep" or "balance".
        replay_size: Transitions of online steps to keep; further ones overwrite the oldest. 0 keeps all.
        log_interval: Updates between two rows of metrics.
        evaluation_interval: Updates between two evaluations.
        evaluation_episodes: Episodes of each evaluation of each seed. With 0, no episode is played; policies and
            metrics are still saved.
        evaluation_seed: Seed of the first evaluation episode; the other episodes have the following seeds.
        success_timing: When OGBench checks a step for success: "before" it, "after" it (as for the published scores),
            or "environment" for the behaviour of the installed version.
        checkpoint_interval: Updates between two checkpoints.
        standardise_observations: Whether observations are shifted to mean 0 and scaled to a common standard deviation.
        observation_scale: Standard deviation of standardised observations.
        frame_stack: Frames per observation, for visual tasks of OGBench.
        crop_probability: Probability that the images of a batch are shifted at random, for visual tasks of OGBench.
        start_from: A run, or one of its checkpoint folders, whose networks and optimisers are the initial states.
        dataset: A file to use instead of the task's default.

    Example:
        >>> import drol
        >>> config = drol.RunConfig(drol.DROL(bc_weight=0.3), seeds=(0, 1), steps=10_000)
        >>> config.total_steps
        10000
    """

    algorithm: Algorithm
    task: str = DEFAULT_TASK
    seeds: tuple[int, ...] = setting((0,), "seeds, trained at once; each gives a policy of its own", 0, MOST_SEEDS)
    steps: int = setting(1_000_000, "updates of each seed", 1, MOST_STEPS)
    online_steps: int = setting(
        0,
        "further updates of each seed, each after one step in the environment; their data joins the rest",
        0,
        MOST_STEPS,
    )
    online_data: str = setting(
        "keep",
        "batches of online updates: keep draws from all transitions alike, balance draws half from the new ones",
        choices=("keep", "balance"),
    )
    replay_size: int = setting(
        0,
        "transitions of online steps that are kept, of which the oldest are overwritten; 0 keeps all",
        0,
        MOST_STEPS,
    )
    log_interval: int = setting(5_000, "updates between two rows of metrics", 1, MOST_STEPS)
    evaluation_interval: int = setting(100_000, "updates between two evaluations", 1, MOST_STEPS)
    evaluation_episodes: int = setting(
        50,
        "episodes of each evaluation of each seed; 0 plays none",
        0,
        1_000_000,
    )
    evaluation_seed: int = setting(
        0, "seed of the first evaluation episode; the others count up from it", 0, MOST_SEEDS
    )
    success_timing: str = setting(
        "environment",
        "when OGBench judges a step: before it (as the data), after it (as OGBench 1.1, with which the published "
        "scores were made), or as the environment does by itself",
        choices=("environment", "before", "after"),
    )
    checkpoint_interval: int = setting(20_000, "updates between two checkpoints", 1, MOST_STEPS)
    standardise_observations: bool = setting(
        False, "shift and scale observations to mean 0 and deviation 1 over the data; saved with the policy"
    )
    observation_scale: float = setting(
        1.0,
        "deviation that standardised observations get; above 1, small networks tell nearby places apart sooner",
        1e-6,
        1e6,
    )
    frame_stack: int = setting(FRAME_STACK, "frames that make one observation of a visual task", 1, 64)
    crop_probability: float = setting(
        CROP_PROBABILITY, "probability that the images of a batch are shifted at random, of a visual task", 0, 1
    )
    start_from: str | None = dataclasses.field(
        default=None,
        metadata={
            "description": "a run, or one folder of its checkpoints, whose networks and optimisers to start from",
            "flag": "--from",
        },
    )
    dataset: str | None = dataclasses.field(
        default=None, metadata={"description": "a file of the task's format to use in place of its own"}
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if "choices" in field.metadata:
                check_field(field, getattr(self, field.name))
            if isinstance(field.default, float):  # so that 4 and 4.0 give the same run, in memory and in files
                object.__setattr__(self, field.name, float(getattr(self, field.name)))
        if not isinstance(self.algorithm, Algorithm):
            raise InputError(f"algorithm is {self.algorithm!r}; it must be an algorithm, such as drol.DROL()")
        last_episode = self.evaluation_seed + self.evaluation_episodes - 1
        if last_episode > MOST_SEEDS:
            raise InputError(f"evaluation_seed reaches {last_episode}; it must stay at most {MOST_SEEDS}")
        for name in ("start_from", "dataset"):
            if getattr(self, name) is not None and (
                not isinstance(getattr(self, name), str) or not getattr(self, name)
            ):
                raise InputError(f"{name} is {getattr(self, name)!r}; it must name a file or folder, or be left out")
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds {' '.join(map(str, self.seeds))} has duplicates; each must be given once")

    @property
    def total_steps(self) -> int:
        """Updates of each seed, offline and online."""
        return self.steps + self.online_steps

    def load_task(self) -> Task:
        """Load the task with its data and prepare it for these settings."""
        return self.prepare(load_task(self.task, self.dataset))

    def prepare(self, task: Task) -> Task:
        """Return a task with the success timing, the frame stack and the cropping of these settings."""
        task = task.judged(self.success_timing)
        if task.stacks_frames:
            return task.with_images(self.frame_stack, self.crop_probability)
        for name in ("frame_stack", "crop_probability"):
            if getattr(self, name) != getattr(RunConfig, name):
                given = f"{name} is {getattr(self, name)}"
                raise InputError(f"{given}; it is for visual tasks of OGBench, so leave it out for {task.name}")
        return task

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values for JSON."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["algorithm"] = {"name": algorithm_name(self.algorithm), **self.algorithm.to_dict()}
        return json.loads(json.dumps(values))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], algorithm: type[Algorithm] | None = None) -> Self:
        """Return the settings from the result of `to_dict`; an unregistered algorithm needs its class."""
        hyperparameters = dict(values["algorithm"])
        name = hyperparameters.pop("name")
        kind = algorithm or find_algorithm(name)
        known = [field.name for field in dataclasses.fields(cls)]
        for each in values:
            if each not in known:
                raise unknown_name("setting of a run", each, known)
        rest = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return cls(**{**rest, "algorithm": kind.from_dict(hyperparameters)})

    def folder_name(self) -> str:
        """Return the default folder of this run; it depends on all settings except the numbers of steps."""
        content = {
            field.name: getattr(owner, field.name)
            for owner in (self, self.algorithm)
            for field in dataclasses.fields(owner)
            if field.name not in (*GROWING, "algorithm") and getattr(owner, field.name) != field.default
        }
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.task}/{algorithm_name(self.algorithm)}-{digest}"


class Difference(NamedTuple):
    """One entry that differs between two configurations."""

    path: tuple[str, ...]  # the names that lead to it
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path[-1]} was {self.before}, now {self.after}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[Difference]:
    """Return the differences between two configurations in JSON form, nested entries included."""
    found = []
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            found += differences(before, after, (*path, name))
        elif before != after:
            found.append(Difference((*path, name), before, after))
    return found
