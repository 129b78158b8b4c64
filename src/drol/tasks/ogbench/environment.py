"""Make OGBench's environments. This module does not import jax, so that environment processes start quickly."""

import importlib
import os
import sys
import tempfile
import warnings
from typing import Any

from drol.errors import InputError
from drol.tasks.frames import stack_frames
from drol.tasks.packages import missing_package

MODULES = ("gymnasium", "mujoco", "ogbench")  # imported to make an environment
SUCCESS_TIMINGS = {"before": {}, "after": {"success_timing": "post"}}  # arguments; single tasks default to "pre"


def make_ogbench(environment_name: str, frame_stack: int = 1, success_timing: str = "before") -> Any:
    """Make the environment of an OGBench id; each observation stacks the last `frame_stack` frames.

    With the timing "before", the reward, success and end of a step depend on the state before it, as in the data and in
    OGBench since 1.2. With "after", they depend on the state after it, as in older versions.
    """
    try:
        import gymnasium
        import ogbench  # noqa: F401 (registers the environments)
    except ImportError as error:
        raise missing_package("OGBench", "ogbench", error) from error
    if environment_name.startswith("visual-"):
        draw_without_screen()
    previous = tempfile.tempdir
    # A maze writes a temporary model file. Warnings of gymnasium about spaces and of glfw about screens are suppressed.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tempfile.tempdir = folder
        try:
            environment = gymnasium.make(environment_name, disable_env_checker=True, **SUCCESS_TIMINGS[success_timing])
            # A table rebuilds its action space, with a warning, at every access. Setting it on the wrapper caches it.
            environment.action_space = environment.action_space
        finally:
            tempfile.tempdir = previous
    return stack_frames(environment, frame_stack)


def draw_without_screen() -> None:
    """Make MuJoCo render without a screen; reload its modules, since it reads MUJOCO_GL when it is imported."""
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
