"""Tasks: a dataset, an environment to evaluate a policy in, and a score."""

import functools
import math
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions
from drol.errors import InputError

if TYPE_CHECKING:
    from drol.data.dataset import Transitions

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
LONGEST_NAME = 200


@dataclass(frozen=True)
class Episode:
    """An episode that a policy played in an environment.

    Attributes:
        seed: The seed of the environment.
        total_reward: The sum of its rewards.
        length: The number of its steps.
        success: Whether the environment reported success at the last step.
        failure: The error of the environment, if it failed.
        positions: The positions [length + 1, 2], if the task has a maze to draw.

    Example:
        >>> import drol
        >>> drol.Episode(seed=0, total_reward=-12.0, length=12, success=True).to_dict()
        {'seed': 0, 'return': -12.0, 'length': 12, 'success': True}
    """

    seed: int
    total_reward: float
    length: int
    success: bool
    failure: str | None = None
    positions: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the recorded form of the episode, without the positions."""
        row = {"seed": self.seed, "return": self.total_reward, "length": self.length, "success": self.success}
        return row | ({"failure": self.failure} if self.failure else {})


@dataclass(frozen=True)
class Maze:
    """The map of a maze, for drawing; the centre of cell (row, column) is at `unit * (column, row) - offset`.

    Attributes:
        walls: Whether each cell is a wall, [rows, columns] of booleans.
        unit: The width of a cell.
        offset: The offset (x, y) that is subtracted from a cell's position.
        start: The start of episodes, (x, y).
        goal: The position of the goal, (x, y).
        goal_radius: The distance from the goal within which it counts as reached.
    """

    walls: np.ndarray
    unit: float
    offset: tuple[float, float]
    start: tuple[float, float]
    goal: tuple[float, float]
    goal_radius: float


@dataclass(frozen=True)
class Task:
    """A dataset and, if there is one, the environment to evaluate a policy in.

    `drol.load_task` loads one by its name, `drol.task_from` makes one from a dataset in memory.

    Attributes:
        name: Its name; `drol.load_task` loads it by this name if a task source has it.
        train: The transitions to learn from.
        validation: Held-out transitions, or None.
        make_environment: A function that makes a gymnasium environment; None if there is only data.
        score: The score of the episodes of an evaluation; higher is better.
        score_name: The name of the score, with its unit.
        reward_offset: The number to add to the environment's rewards to get the rewards of the data.
        action_box: The original bounds of the data's actions, if they were scaled.
        observation_dimensions: The names, units and frames of the numbers of an observation, if known.
        action_dimensions: The names, units and frames of the numbers of an action, if known.
        control_rate: Steps of the data per second; None if unknown.
        maze: A maze to draw; the first two numbers of an observation are then a position in it.
        environment_modules: Modules that the server of environment processes imports once, for all of them.
        shares_process: Whether several of its environments may run in one process, which makes evaluations faster. It
            requires that a step neither draws from the global generators of Python and NumPy nor uses other state of
            the process.
        success_timing: Whether the environment evaluates success "before" or "after" a step; None if unknown.
        timed_environments: Functions that make the environment, by success timing; empty if there is no choice.
        stacks_frames: Whether a run may choose the number of stacked images in an observation. The functions that make
            the environment then accept `frame_stack`.
    """

    name: str
    train: "Transitions"
    validation: "Transitions | None"
    make_environment: Callable[..., Any] | None
    score: Callable[[Sequence[Episode]], float]
    score_name: str
    reward_offset: float = 0.0
    action_box: ActionBox | None = None
    observation_dimensions: Dimensions | None = None
    action_dimensions: Dimensions | None = None
    control_rate: float | None = None
    maze: Maze | None = None
    environment_modules: tuple[str, ...] = ()
    shares_process: bool = False
    success_timing: str | None = None
    timed_environments: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    stacks_frames: bool = False

    def judged(self, timing: str) -> "Task":
        """Return the task with an environment that evaluates success "before" or "after" a step.

        The timing "environment" changes nothing. The rewards of the data do not change.
        """
        if timing in ("environment", self.success_timing):
            return self
        if timing not in self.timed_environments:
            raise InputError(f"success_timing is {timing!r}, but {self.name} has a fixed one; remove this setting")
        return replace(self, make_environment=self.timed_environments[timing], success_timing=timing)

    def with_images(self, frame_stack: int, crop_probability: float) -> "Task":
        """Return the task with the given frame stack and crop probability; it must have `stacks_frames`."""
        data: list[Any] = [self.train, self.validation]  # datasets of images, which are dataclasses
        train, validation = (
            replace(each, frame_stack=frame_stack, crop_probability=crop_probability) if each is not None else None
            for each in data
        )
        make, *timed = (
            functools.partial(make, frame_stack=frame_stack) if make is not None else None
            for make in (self.make_environment, *self.timed_environments.values())
        )
        environments = dict(zip(self.timed_environments, timed, strict=True))
        return replace(self, train=train, validation=validation, make_environment=make, timed_environments=environments)


def success_rate(episodes: Sequence[Episode]) -> float:
    """Return the percentage of successful episodes; an episode whose environment failed counts as unsuccessful."""
    return 100.0 * sum(episode.success for episode in episodes) / len(episodes)


def mean_return(episodes: Sequence[Episode]) -> float:
    """Return the mean return of the episodes."""
    return sum(episode.total_reward for episode in episodes) / len(episodes)


SCORES = {"return": (mean_return, "return"), "success": (success_rate, "success (%)")}


def task_from(
    dataset: "Transitions",
    name: str,
    environment: Callable[[], Any] | None = None,
    validation: "Transitions | None" = None,
    score: str | Callable[[Sequence[Episode]], float] = "return",
    score_name: str | None = None,
    reward_offset: float = 0.0,
    action_box: ActionBox | None = None,
    maze: Maze | None = None,
    environment_modules: Sequence[str] = (),
    observation_dimensions: Dimensions | None = None,
    action_dimensions: Dimensions | None = None,
    control_rate: float | None = None,
) -> Task:
    """Make a task from a dataset in memory.

    docs/extend.md has an example.

    Args:
        dataset: The transitions to learn from, such as `drol.Dataset.from_arrays(...)`.
        name: A name of letters, digits, '.', '_', '-' and '/'.
        environment: A class, or a function at the top level of a module, that makes a gymnasium environment when it is
            called without arguments; None if there is only data.
        validation: Held-out transitions.
        score: "return" for the mean return of the episodes, "success" for the percentage of episodes whose last step
            had a true `info["success"]`, or a function from episodes to a number.
        score_name: The name of the score, with its unit; None: a default that depends on `score`.
        reward_offset: The number to add to the environment's rewards to get the rewards of the data.
        action_box: The original bounds of the data's actions, if they were scaled.
        maze: A maze to draw.
        environment_modules: Modules that the server of environment processes imports once, for all of them.
        observation_dimensions: The names, units and frames of the numbers of an observation, in order.
        action_dimensions: The names, units and frames of the numbers of an action, in order.
        control_rate: Steps of the data per second, stored in an exported policy; None if unknown.

    Returns:
        The task, for `drol.train(config, folder, task)` or for the `load` of a `drol.TaskSource`.

    Example:
        >>> import drol
        >>> data = drol.Dataset.from_arrays([[0.0], [0.5]], [[0.5], [0.0]], [0.0, 1.0], [False, True], ends="terminal")
        >>> drol.task_from(data, "my-robot").score_name
        'return'
    """
    if not NAME.fullmatch(name) or ".." in name or len(name) > LONGEST_NAME:
        raise InputError(
            f"task name {name!r} is not allowed; use up to {LONGEST_NAME} letters, digits, '.', '_', '-' and '/', "
            "each part beginning with a letter or digit"
        )
    check_fit(dataset, validation, action_box)
    shapes = {"observation": dataset.spec.observation_shape, "action": (dataset.spec.action_size,)}
    for what, named in (("observation", observation_dimensions), ("action", action_dimensions)):
        if named is not None and (len(named.names),) != shapes[what]:
            raise InputError(
                f"{what}_dimensions has {len(named.names)} names for shape {list(shapes[what])}; they differ"
            )
    if control_rate is not None and not 0 < control_rate < math.inf:
        raise InputError(f"control_rate is {control_rate}; it must be a positive number of steps a second")
    if environment is not None:
        check_environment(environment)
    if isinstance(score, str) and score not in SCORES:
        raise InputError(f'score is {score!r}; it must be "return", "success" or a function of episodes')
    function, default_name = SCORES[score] if isinstance(score, str) else (score, "score")
    return Task(
        name=name,
        train=dataset,
        validation=validation,
        make_environment=environment,
        score=function,
        score_name=score_name or default_name,
        reward_offset=reward_offset,
        action_box=action_box,
        observation_dimensions=observation_dimensions,
        action_dimensions=action_dimensions,
        control_rate=control_rate,
        maze=maze,
        environment_modules=tuple(environment_modules),
    )


def check_fit(dataset: "Transitions", validation: "Transitions | None", action_box: ActionBox | None) -> None:
    """Raise `InputError` unless both are datasets, and the validation data and action bounds match the dataset."""
    from drol.transition import Spec  # here, so that listing tasks does not import jax

    for name, each in (("dataset", dataset), ("validation", validation)):
        if each is not None and not isinstance(getattr(each, "spec", None), Spec):
            raise InputError(f"{name} is a {type(each).__name__}; it must be a drol.Dataset, see Dataset.from_arrays")
    if validation is not None and validation.spec != dataset.spec:
        raise InputError(f"validation has {validation.spec} where dataset has {dataset.spec}; they must be equal")
    size = dataset.spec.action_size
    if action_box is not None and len(action_box.low) != size:
        raise InputError(f"action_box has {len(action_box.low)} dimensions; the actions of dataset have {size}")


def check_environment(environment: Any) -> None:
    """Raise `InputError` unless an object is callable and can be pickled for another process."""
    if not callable(environment):
        raise InputError(
            f"environment is a {type(environment).__name__}; it must be a function that makes one, such as its class"
        )
    try:
        pickle.dumps(environment)
    except Exception as error:
        raise InputError(
            f"environment cannot be sent to another process ({error}); it must be a class or a function at the top "
            "of a module, not one inside a function"
        ) from error
