"""The process that owns one environment. It imports no jax; whatever breaks in it costs one episode."""

import random
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

# They ask a run to save and stop, and often reach every process of a terminal or a job; the main one decides.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class Reset(NamedTuple):
    """Start an episode."""

    seed: int


class Step(NamedTuple):
    """Take an action."""

    action: np.ndarray


class Render(NamedTuple):
    """Draw what the environment looks like now."""


class Picture(NamedTuple):
    """What it looks like."""

    pixels: np.ndarray  # [height, width, 3] of bytes


class Seen(NamedTuple):
    """What the environment answered."""

    observation: np.ndarray
    reward: float
    done: bool  # the episode is over, because the task ended or because its time was up
    success: bool
    terminated: bool = False  # the task ended


class Broke(NamedTuple):
    """The environment raised an error; a new one is made for the next episode."""

    reason: str


def serve(connection: Connection, make_environment: Callable[[], Any]) -> None:
    """Answer resets and steps until the other side closes the connection."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    warnings.filterwarnings("ignore", ".*precision lowered by casting")  # of OGBench's tables, at every reset
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
        except OSError:  # nobody waits for it any more
            return


def render(environment: Any) -> np.ndarray:
    """Return a picture by the environment's own way of drawing itself."""
    from drol.tasks.ogbench.environment import draw_without_screen

    draw_without_screen()
    inner = getattr(environment, "unwrapped", environment)
    if getattr(inner, "render_mode", None) is None:
        inner.render_mode = "rgb_array"
    picture = environment.render()
    return np.zeros(0, np.uint8) if picture is None else np.asarray(picture, np.uint8)


def reset(environment: Any, seed: int) -> Seen:
    """Start an episode that depends on its seed alone: OGBench also draws from the global generator of NumPy."""
    random.seed(seed)
    np.random.seed(seed)
    environment.action_space.seed(seed)
    observation, _ = environment.reset(seed=seed)
    return Seen(observation, 0.0, False, False)
