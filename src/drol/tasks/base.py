"""A task: data, an environment to test a policy in, and a score."""

import functools
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
        success: Whether the environment said at its end that the goal was reached.
        failure: Why the environment broke, if it did.
        positions: Where it went, [length + 1, 2], if the task has a maze to draw.

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
        """Return the episode as it is recorded, without the positions."""
        row = {"seed": self.seed, "return": self.total_reward, "length": self.length, "success": self.success}
        return row | ({"failure": self.failure} if self.failure else {})


@dataclass(frozen=True)
class Maze:
    """The map of a maze, for drawing; the centre of cell (row, column) is at `unit * (column, row) - offset`.

    Attributes:
        walls: Which cells are walls, [rows, columns] of booleans.
        unit: The width of a cell.
        offset: What is subtracted from a cell's place, (x, y).
        start: Where episodes start, (x, y).
        goal: Where the goal is, (x, y).
        goal_radius: How near to the goal is near enough.
    """

    walls: np.ndarray
    unit: float
    offset: tuple[float, float]
    start: tuple[float, float]
    goal: tuple[float, float]
    goal_radius: float


@dataclass(frozen=True)
class Task:
    """A dataset and, where there is one, the environment that tells how good a policy is.

    `drol.load_task` loads one by its name, `drol.task_from` makes one from a dataset in memory.

    Attributes:
        name: Its name; `drol.load_task` knows it by this if a task source has it.
        train: The transitions to learn from.
        validation: Transitions that are held out, or None.
        make_environment: A function that makes a gymnasium environment; None if there is only data.
        score: The score of the episodes of an evaluation; more is better.
        score_name: What the score is, with its unit.
        reward_offset: Added to the environment's rewards to make those of the data.
        action_box: The box that the data's actions were scaled from, if they were scaled.
        observation_dimensions: What the numbers of an observation are called, in their order, if that is known.
        action_dimensions: What the numbers of an action are called, if that is known.
        maze: A maze to draw; the first two numbers of an observation are then a position in it.
        environment_modules: Modules that the server of environment processes imports once, for all of them.
        success_timing: Whether the environment judges a step "before" or "after" it; None if that is not known.
        timed_environments: Functions that make the environment with another timing, by timing; empty if it has one.
        stacks_frames: Whether observations are images of which a run may choose how many are stacked; the functions
            that make the environment then take `frame_stack`.
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
    maze: Maze | None = None
    environment_modules: tuple[str, ...] = ()
    success_timing: str | None = None
    timed_environments: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    stacks_frames: bool = False

    def judged(self, timing: str) -> "Task":
        """Return the task with an environment that judges a step "before" or "after" it.

        The timing "environment" changes nothing. The rewards of the data stay as they are.
        """
        if timing in ("environment", self.success_timing):
            return self
        if timing not in self.timed_environments:
            raise InputError(f"success_timing is {timing!r}; {self.name} leaves no choice, so leave it out")
        return replace(self, make_environment=self.timed_environments[timing], success_timing=timing)

    def with_images(self, frame_stack: int, crop_probability: float) -> "Task":
        """Return a task that `stacks_frames` with so many frames in an observation, and crops so often in training."""
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
    """Return the share of successful episodes in percent; one whose environment broke counts as failed."""
    return 100.0 * sum(episode.success for episode in episodes) / len(episodes)


def mean_return(episodes: Sequence[Episode]) -> float:
    """Return the mean sum of rewards of the episodes."""
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
) -> Task:
    """Make a task from a dataset in memory.

    Args:
        dataset: The transitions to learn from, such as `drol.Dataset.from_arrays(...)`.
        name: A name of letters, digits, '.', '_', '-' and '/'.
        environment: A class, or a function at the top of a module, that makes a gymnasium environment when it is
            called without arguments; None if there is only data.
        validation: Transitions that are held out.
        score: "return" for the mean return of the episodes, "success" for the share of those whose last step had a
            true `info["success"]`, or a function from episodes to a number.
        score_name: What the score is, with its unit; a name that suits `score` if None.
        reward_offset: Added to the environment's rewards to make those of the data.
        action_box: The box that the data's actions were scaled from, if they were scaled.
        maze: A maze to draw.
        environment_modules: Modules that the server of environment processes imports once, for all of them.
        observation_dimensions: What the numbers of an observation are called, in their order.
        action_dimensions: What the numbers of an action are called, in their order.

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
        maze=maze,
        environment_modules=tuple(environment_modules),
    )


def check_fit(dataset: "Transitions", validation: "Transitions | None", action_box: ActionBox | None) -> None:
    """Refuse what is no dataset, and held-out data or a box of actions that do not fit it."""
    from drol.types import Spec  # here, so that listing tasks does not wait for jax

    for name, each in (("dataset", dataset), ("validation", validation)):
        if each is not None and not isinstance(getattr(each, "spec", None), Spec):
            raise InputError(f"{name} is a {type(each).__name__}; it must be a drol.Dataset, see Dataset.from_arrays")
    if validation is not None and validation.spec != dataset.spec:
        raise InputError(f"validation has {validation.spec} where dataset has {dataset.spec}; they must be equal")
    size = dataset.spec.action_size
    if action_box is not None and len(action_box.low) != size:
        raise InputError(f"action_box has {len(action_box.low)} dimensions; the actions of dataset have {size}")


def check_environment(environment: Any) -> None:
    """Refuse what cannot be called, and what cannot be sent to the process that will call it."""
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
