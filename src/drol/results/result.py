"""One seed's evaluation, with the metadata needed to compare it."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args, get_type_hints

from drol.algorithms import find_algorithm
from drol.decoding import Count, Positive, convert, located, parse_json
from drol.errors import InputError, unknown_name
from drol.runs.config import RunConfig
from drol.runs.records import Rows

Evaluation = Literal["training", "extra"]
EVALUATIONS = get_args(Evaluation)
FIGURE = "figure/"  # prefix of the columns of `figures`
SUCCESS = "success (%)"  # the name of a score that is a success rate
ROUNDING = 0.01  # percent
LARGEST_SCORE = 1e30  # squares of larger numbers overflow in the statistics
# Settings that do not change numbers, or that a result has in other fields.
LEFT_OUT = (
    "algorithm", "task", "seeds", "steps", "online_steps", "log_interval", "evaluation_interval",
    "evaluation_episodes", "evaluation_seed", "checkpoint_interval", "success_timing", "dataset",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One evaluation of one seed.

    Attributes:
        task: The name of the task.
        method: The name of the algorithm.
        settings: JSON with sorted names: the hyperparameters and settings of the run that differ from the defaults.
            Evaluations of online training also have the `steps` of offline training.
        settings_id: Eight hexadecimal digits that identify `settings`.
        seed: The seed of the training.
        step: The number of updates of the policy.
        steps: The number of updates that the run plans, including online ones.
        evaluation: "training", or "extra" for evaluations by `drol evaluate`.
        best_of: The number of drawn actions per step, from which the critic chose.
        first_episode_seed: The seed of the first episode; the others count up from it.
        episodes: The number of episodes.
        outcomes: A 1 for each episode that succeeded and a 0 for each that did not, in the order of their seeds.
        score: The task's score.
        score_name: The name and unit of the score.
        mean_return: The mean sum of rewards of the episodes.
        mean_length: Their mean number of steps.
        success_timing: Whether success is checked "before" or "after" a step; empty if unknown.
        dataset_fingerprint: The fingerprint of the data.
        versions: The versions of packages that may influence a score.
        run: The last two parts of the run's folder.
        figures: The diagnostics of the seed at this step, by name.
    """

    task: str
    method: str
    settings: str
    settings_id: str
    seed: Count
    step: Count
    steps: Count
    evaluation: Evaluation
    best_of: Positive
    first_episode_seed: Count
    episodes: Positive
    outcomes: str
    score: float
    score_name: str
    mean_return: float
    mean_length: float
    success_timing: str
    dataset_fingerprint: str
    versions: str
    run: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def setting(self, name: str) -> Any:
        """Return a hyperparameter or a setting of the run: the given value, otherwise the default."""
        given = json.loads(self.settings)
        defaults = {each.name: each.default for each in dataclasses.fields(RunConfig) if each.name not in LEFT_OUT}
        defaults |= {each.name: each.default for each in dataclasses.fields(find_algorithm(self.method))}
        if name not in given | defaults:
            raise unknown_name(f"setting of {self.method}", name, [*given, *defaults])
        value = given.get(name, defaults.get(name))
        return tuple(value) if isinstance(value, list) else value

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key of a policy's evaluation; results with the same key must be equal."""
        return (*self.group, self.seed, self.step, self.evaluation)

    @property
    def group(self) -> tuple[str, str, str, int]:
        """The key of a group of seeds and steps: task, method, settings and number of drawn actions."""
        return self.task, self.method, self.settings_id, self.best_of

    @property
    def circumstances(self) -> dict[str, str]:
        """The conditions under which scores of one task are comparable: data, timing, versions of the simulator."""
        versions = dict(each.split(" ", 1) for each in self.versions.split(", ") if " " in each)
        values = {"dataset_fingerprint": self.dataset_fingerprint, "success_timing": self.success_timing}
        return values | {name: versions.get(name, "") for name in ("gymnasium", "mujoco", "ogbench")}

    def columns(self) -> dict[str, Any]:
        """Return the result as flat columns for a table."""
        values = {name: getattr(self, name) for name in COLUMNS}
        return values | {FIGURE + name: value for name, value in self.figures.items()}

    def to_dict(self) -> dict[str, Any]:
        return self.columns()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the result of the values of `columns`, which may be text; raise `InputError` for invalid values."""
        own = {name: value for name, value in values.items() if name in COLUMNS}
        figures = {
            name.removeprefix(FIGURE): value for name, value in values.items() if name and name.startswith(FIGURE)
        }
        figures = {name: value for name, value in figures.items() if value not in (None, "")}
        result: Self = convert(own, cls, strict=False)
        result = dataclasses.replace(result, figures=convert(figures, dict[str, float], "figure", strict=False))
        result.check()
        return result

    def check(self) -> None:
        """Raise `InputError` for values that contradict each other."""
        settings = located("settings", lambda: convert(parse_json(self.settings), dict[str, Any]))
        if settings_id(self.settings) != self.settings_id:
            raise InputError(f"settings_id: expected {settings_id(self.settings)}, got {self.settings_id}")
        convert(settings.get("num_candidates", 1), Positive, "settings.num_candidates")
        if len(self.outcomes) != self.episodes or set(self.outcomes) - {"0", "1"}:
            raise InputError(
                f"outcomes: expected {self.episodes} characters 0 or 1, got {len(self.outcomes)} characters"
            )
        if not math.isfinite(self.score):
            raise InputError(f"score: expected a finite number, got {self.score}")
        if abs(self.score) > LARGEST_SCORE:
            raise InputError(
                f"score: expected a number from -{LARGEST_SCORE:g} to {LARGEST_SCORE:g}, got {self.score:g}"
            )
        rate = 100 * self.outcomes.count("1") / self.episodes
        if self.score_name == SUCCESS and abs(self.score - rate) > ROUNDING:
            raise InputError(f"score: expected {rate:g}, the success rate of outcomes, got {self.score:g}")


# The columns of a file and their types, without those of `figures`.
COLUMNS: dict[str, type] = {
    name: kind if kind in (int, float) else str for name, kind in get_type_hints(Result).items() if name != "figures"
}


class Results(Rows[Result]):
    """Results, and a line for each skipped row, run or file.

    Attributes:
        skipped: The skipped rows, runs and files with the reasons.
    """

    def __init__(self, rows: Iterable[Result] = (), skipped: Iterable[str] = ()):
        super().__init__(rows)
        self.skipped = list(skipped)


def settings_id(settings: str) -> str:
    """Return eight hexadecimal digits that identify the text of settings."""
    return hashlib.sha256(settings.encode()).hexdigest()[:8]
