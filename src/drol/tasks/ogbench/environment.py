"""Make environments. Nothing here imports jax, so the processes that step them start quickly and stay small."""

import collections
import importlib
import os
import sys
import tempfile
import warnings
from typing import Any

import numpy as np

from drol.errors import InputError


def make_ogbench(environment_name: str, frame_stack: int = 1) -> Any:
    """The environment of an OGBench id, each observation made of its last `frame_stack` frames."""
    import gymnasium
    import ogbench  # noqa: F401 (registers the environments)

    if environment_name.startswith("visual-"):
        draw_without_screen()
    previous = tempfile.tempdir
    # A maze writes a model file that nobody needs afterwards; gymnasium and glfw warn of its boxes and of screens.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tempfile.tempdir = folder
        try:
            environment = gymnasium.make(environment_name, disable_env_checker=True)
        finally:
            tempfile.tempdir = previous
    return stack_frames(environment, frame_stack)


def stack_frames(environment: Any, count: int) -> Any:
    """The environment with the last `count` frames as its observation, as `Dataset` stacks them; 1 changes nothing."""
    return StackedFrames(environment, count) if count > 1 else environment


class StackedFrames:
    """An environment whose observations are joined along their last axis, oldest first.

    At the start of an episode its first frame stands for those before it.
    """

    def __init__(self, environment: Any, count: int):
        self.environment = environment
        self.frames: collections.deque[np.ndarray] = collections.deque(maxlen=count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.environment, name)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        frame, info = self.environment.reset(**options)
        self.frames.extend([frame] * (self.frames.maxlen or 1))
        return np.concatenate(self.frames, -1), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        frame, *rest = self.environment.step(action)
        self.frames.append(frame)
        return np.concatenate(self.frames, -1), *rest


def draw_without_screen() -> None:
    """Let MuJoCo draw on a machine that has no screen; it reads MUJOCO_GL at its import, which may be over."""
    if sys.platform != "linux" or "DISPLAY" in os.environ or "MUJOCO_GL" in os.environ:
        return
    os.environ["MUJOCO_GL"] = "egl"
    try:
        for name in ("mujoco.rendering.classic.gl_context", "mujoco.gl_context"):  # newer and older versions
            if name in sys.modules:
                importlib.reload(sys.modules[name])
    except (ImportError, AttributeError) as error:  # AttributeError: PyOpenGL found no libEGL
        del os.environ["MUJOCO_GL"]
        raise InputError(
            f"MuJoCo cannot draw images without a screen ({error}); install libegl1 or set MUJOCO_GL to osmesa or glfw"
        ) from error
