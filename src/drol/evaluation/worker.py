"""The process of one environment. It does not import jax. A failure in it ends only the current episode."""

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
    """Ask for the most steps of an episode."""


class Limit(NamedTuple):
    """The most steps of an episode."""

    steps: int | None  # None if the environment does not say


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


def serve(connection: Connection, make_environment: Callable[[], Any]) -> None:
    """Answer resets and steps until the other side closes the connection."""
    for number in STOP_SIGNALS:  # a terminal sends them to every process; only the main process handles them
        signal.signal(number, signal.SIG_IGN)
    warnings.filterwarnings("ignore", ".*precision lowered by casting")  # from OGBench's tables, at every reset
    environment = None
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        try:
            if isinstance(request, Reset):
                environment = environment or make_environment()
                answer = reset(environment, request.seed)
            elif isinstance(request, AskLimit):
                environment = environment or make_environment()
                answer = Limit(episode_limit(environment))
            elif isinstance(request, Render):
                answer = Picture(render(environment))
            else:
                assert environment is not None, "step before reset"
                observation, reward, terminated, truncated, info = environment.step(request.action)
                success = bool(info.get("success", False))
                answer = Seen(observation, float(reward), terminated or truncated, success, bool(terminated))
        except Exception as error:
            environment = None
            answer = Broke(f"{type(error).__name__}: {error}")
        try:
            connection.send(answer)
        except OSError:  # the other side has closed the connection
            return


def episode_limit(environment: Any) -> int | None:
    """Return the most steps of an episode, from `TimeLimit` of gymnasium or the specification; None if unknown."""
    limits = []
    while environment is not None:
        layer = vars(environment) if hasattr(environment, "__dict__") else {}
        limits += [layer.get("_max_episode_steps"), getattr(layer.get("_spec"), "max_episode_steps", None)]
        limits.append(getattr(layer.get("spec"), "max_episode_steps", None))
        environment = layer.get("env")
    return min((each for each in limits if isinstance(each, int)), default=None)


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
