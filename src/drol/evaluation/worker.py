"""The process of one or several environments. It does not import jax. A failure ends only the episodes in it."""

import random
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from drol.stop_signals import STOP_SIGNALS


class Reset(NamedTuple):
    """Start an episode."""

    seed: int


class Step(NamedTuple):
    """Take an action."""

    action: np.ndarray


class Render(NamedTuple):
    """Render the environment."""


class AskLimit(NamedTuple):
    """Ask for the maximum steps of an episode."""


class Limit(NamedTuple):
    """The maximum steps of an episode."""

    steps: int | None  # None if unknown


class Batch(NamedTuple):
    """Resets and steps of several environments of the process."""

    seeds: dict[int, int]  # number of an environment -> seed of the episode that it starts
    numbers: list[int]  # the environments that take a step
    actions: np.ndarray  # [numbers, action]


class Picture(NamedTuple):
    """A rendered picture."""

    pixels: np.ndarray  # [height, width, 3] of bytes


class Seen(NamedTuple):
    """The result of a reset or a step."""

    observation: np.ndarray
    reward: float
    done: bool  # the episode is over: terminated or truncated
    success: bool
    terminated: bool = False


class Broke(NamedTuple):
    """The environment raised an error; the next episode gets a new environment."""

    reason: str


class BatchSeen(NamedTuple):
    """The results of a batch, in few objects, which are faster to pickle than an object for each environment."""

    numbers: list[int]  # the environments that answered
    observations: np.ndarray  # [numbers, ...]
    rewards: list[float]
    dones: list[bool]
    successes: list[bool]
    broken: dict[int, str]  # number of an environment that raised an error -> reason


def serve(connection: Connection, make_environment: Callable[[], Any]) -> None:
    """Answer resets and steps until the other side closes the connection."""
    for number in STOP_SIGNALS:  # a terminal sends them to every process; only the main process handles them
        signal.signal(number, signal.SIG_IGN)
    warnings.filterwarnings("ignore", ".*precision lowered by casting")  # from OGBench's tables, at every reset
    environments = Environments(make_environment)
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        try:
            is_batch = isinstance(request, Batch)
            connection.send(environments.answer_batch(request) if is_batch else environments.answer(request))
        except OSError:  # the other side has closed the connection
            return


def episode_limit(environment: Any) -> int | None:
    """Return the maximum steps of an episode, from `TimeLimit` of gymnasium or the specification; None if unknown."""
    limits = []
    while environment is not None:
        layer = vars(environment) if hasattr(environment, "__dict__") else {}
        limits += [layer.get("_max_episode_steps"), getattr(layer.get("_spec"), "max_episode_steps", None)]
        limits.append(getattr(layer.get("spec"), "max_episode_steps", None))
        environment = layer.get("env")
    return min((each for each in limits if isinstance(each, int)), default=None)


class Environments:
    """The environments of this process, which are made when they start their first episode."""

    def __init__(self, make_environment: Callable[[], Any]):
        self.make_environment = make_environment
        self.made: dict[int, Any] = {}

    def make(self, number: int) -> Any:
        """Return an environment, and make it if necessary."""
        if number not in self.made:
            self.made[number] = self.make_environment()
        return self.made[number]

    def answer(self, request: Reset | Step | Render | AskLimit, number: int = 0) -> Seen | Picture | Limit | Broke:
        """Pass a request to an environment; after an error, forget the environment."""
        try:
            if isinstance(request, Reset):
                return reset(self.make(number), request.seed)
            if isinstance(request, AskLimit):
                return Limit(episode_limit(self.make(number)))
            assert number in self.made, "an episode starts with a reset"
            if isinstance(request, Render):
                return Picture(render(self.made[number]))
            observation, reward, terminated, truncated, info = self.made[number].step(request.action)
            success = bool(info.get("success", False))
            return Seen(observation, float(reward), bool(terminated or truncated), success, bool(terminated))
        except Exception as error:
            self.made.pop(number, None)
            return Broke(f"{type(error).__name__}: {error}")

    def answer_batch(self, batch: Batch) -> BatchSeen:
        answers = {number: self.answer(Reset(seed), number) for number, seed in batch.seeds.items()}
        for number, action in zip(batch.numbers, batch.actions, strict=True):
            answers[number] = self.answer(Step(action), number)
        seen = {number: answer for number, answer in answers.items() if isinstance(answer, Seen)}
        return BatchSeen(
            numbers=list(seen),
            observations=np.array([answer.observation for answer in seen.values()]),
            rewards=[answer.reward for answer in seen.values()],
            dones=[answer.done for answer in seen.values()],
            successes=[answer.success for answer in seen.values()],
            broken={number: answer.reason for number, answer in answers.items() if isinstance(answer, Broke)},
        )


def render(environment: Any) -> np.ndarray:
    """Return a picture from `render` of the environment; an empty array if that returns None."""
    from drol.tasks.ogbench.environment import draw_without_screen

    draw_without_screen()
    inner = getattr(environment, "unwrapped", environment)
    if getattr(inner, "render_mode", None) is None:
        inner.render_mode = "rgb_array"
    picture = environment.render()
    return np.zeros(0, np.uint8) if picture is None else np.asarray(picture, np.uint8)


def reset(environment: Any, seed: int) -> Seen:
    """Start an episode that depends only on its seed; OGBench also uses the global generator of NumPy."""
    random.seed(seed)
    np.random.seed(seed)
    environment.action_space.seed(seed)
    observation, _ = environment.reset(seed=seed)
    return Seen(observation, 0.0, False, False)
