"""Everything that determines a run."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.errors import InputError
from drol.tasks import DEFAULT_TASK

# What a preset changes of a run on any task; the algorithm's own `presets` say what it changes there.
PRESETS: dict[str, dict[str, Any]] = {
    "laptop": {
        "steps": 15_000,
        "log_interval": 1_000,
        "evaluation_interval": 5_000,
        "checkpoint_interval": 5_000,
        "standardise_observations": True,
        "observation_scale": 4.0,
    },
}


GROWING = ("steps", "online_steps")  # what may be larger when a run goes on


def setting(default: Any, description: str, minimum: int | None = None, choices: tuple[str, ...] | None = None) -> Any:
    metadata = {"description": description, "minimum": minimum, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class RunConfig:
    """The algorithm with its hyperparameters, the task, the seeds and the intervals."""

    algorithm: Algorithm
    task: str = DEFAULT_TASK
    seeds: tuple[int, ...] = setting((0,), "seeds, trained at once; each gives a policy of its own", minimum=0)
    steps: int = setting(1_000_000, "updates of each seed", minimum=1)
    online_steps: int = setting(
        0, "further updates of each seed, each after one step in the environment; their data joins the rest", minimum=0
    )
    online_data: str = setting(
        "keep",
        "batches of online updates: keep draws from all transitions alike, balance draws half from the new ones",
        choices=("keep", "balance"),
    )
    log_interval: int = setting(5_000, "updates between two rows of metrics", minimum=1)
    evaluation_interval: int = setting(100_000, "updates between two evaluations", minimum=1)
    evaluation_episodes: int = setting(50, "episodes of each evaluation of each seed", minimum=1)
    evaluation_seed: int = setting(0, "seed of the first evaluation episode; the others count up from it", minimum=0)
    checkpoint_interval: int = setting(20_000, "updates between two checkpoints", minimum=1)
    standardise_observations: bool = setting(
        False, "shift and scale observations to mean 0 and deviation 1 over the data; saved with the policy"
    )
    observation_scale: float = setting(
        1.0, "deviation that standardised observations get; above 1, small networks tell nearby places apart sooner"
    )
    dataset: str | None = setting(None, "an OGBench .npz file to use in place of the task's own")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            minimum = field.metadata.get("minimum")
            value = getattr(self, field.name)
            for number in value if isinstance(value, tuple) else (value,):
                if minimum is not None and (type(number) is not int or number < minimum):
                    raise InputError(f"{field.name} is {value}; it must be a whole number of at least {minimum}")
            choices = field.metadata.get("choices")
            if choices and value not in choices:
                raise InputError(f"{field.name} is {value!r}; it must be one of {', '.join(choices)}")
        if not 0 < self.observation_scale < math.inf:
            raise InputError(f"observation_scale is {self.observation_scale}; it must be above 0")
        for name, largest in (
            ("seeds", max(self.seeds, default=0)),
            ("evaluation_seed", self.evaluation_seed + self.evaluation_episodes),
        ):
            if largest >= 2**32:
                raise InputError(f"{name} reaches {largest}; it must stay below {2**32}")
        if not self.seeds:
            raise InputError("seeds is empty; give at least one")
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds {' '.join(map(str, self.seeds))} has duplicates; each must be given once")

    @property
    def total_steps(self) -> int:
        """Updates of each seed, offline and online."""
        return self.steps + self.online_steps

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["algorithm"] = {"name": algorithm_name(self.algorithm), **self.algorithm.to_dict()}
        return json.loads(json.dumps(values))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], algorithm: type[Algorithm] | None = None) -> Self:
        """From JSON; `algorithm` is needed only for one that is not registered."""
        hyperparameters = dict(values["algorithm"])
        name = hyperparameters.pop("name")
        kind = algorithm or find_algorithm(name)
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(values.keys() - known)
        if unknown:
            raise InputError(f"the run's configuration has the unknown entries {unknown}")
        rest = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return cls(**{**rest, "algorithm": kind.from_dict(hyperparameters)})

    def folder_name(self) -> str:
        """A folder for this run: the same configuration, whatever its numbers of steps, has the same name."""
        content = {name: value for name, value in self.to_dict().items() if name not in GROWING}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.task}/{algorithm_name(self.algorithm)}-{digest}"


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two configurations as JSON, in words."""
    words = []
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            words += differences(before, after)
        elif before != after:
            words.append(f"{name} was {before}, now {after}")
    return words
