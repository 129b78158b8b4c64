"""Make OGBench's environments. Nothing here imports jax, so the processes that step them start quickly."""

import importlib
import os
import sys
import tempfile
import warnings
from typing import Any

from drol.errors import InputError
from drol.tasks.frames import stack_frames
from drol.tasks.packages import missing_package

MODULES = ("gymnasium", "mujoco", "ogbench")  # that making an environment imports
SUCCESS_TIMINGS = {"before": {}, "after": {"success_timing": "post"}}  # -> what OGBench is told; single tasks are "pre"


def make_ogbench(environment_name: str, frame_stack: int = 1, success_timing: str = "before") -> Any:
    """Make the environment of an OGBench id; each observation is made of its last `frame_stack` frames.

    Reward, success and end of a step are judged before it, as in the data and as OGBench does since 1.2, or after it,
    as it did until then.
    """
    try:
        import gymnasium
        import ogbench  # noqa: F401 (registers the environments)
    except ImportError as error:
        raise missing_package("OGBench", "ogbench", error) from error
    if environment_name.startswith("visual-"):
        draw_without_screen()
    previous = tempfile.tempdir
    # A maze writes a model file that nobody needs afterwards; gymnasium and glfw warn of its boxes and of screens.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tempfile.tempdir = folder
        try:
            environment = gymnasium.make(environment_name, disable_env_checker=True, **SUCCESS_TIMINGS[success_timing])
            # A table makes its space anew, with a warning, whenever it is asked; a wrapper keeps what it is given.
            environment.action_space = environment.action_space
        finally:
            tempfile.tempdir = previous
    return stack_frames(environment, frame_stack)


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
