"""Record videos of episodes: each episode is replayed exactly while the environment is rendered."""

import io
import math
from pathlib import Path
from typing import Any, Self

import numpy as np

from drol.errors import InputError
from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.episodes import ROWS, draw_rows
from drol.evaluation.worker import Broke, Reset, Step
from drol.policy import Policy
from drol.storage import write_whole
from drol.tasks.base import Episode, Task

MOST_FRAMES = 100
FRAME_MILLISECONDS = 50


class Recorder:
    """Replay and render episodes; the constructor raises `InputError` if the environment cannot be rendered."""

    def __init__(self, task: Task, timeout: float = 120.0):
        assert task.make_environment is not None
        self.task, self.image = task, import_pillow()
        self.process = EnvironmentProcess(task.make_environment, timeout, task.environment_modules)
        self.process.send(Reset(0))
        self.process.receive()
        try:
            self.picture()
        except InputError:
            self.process.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def record(self, policy: Policy, episode: Episode, best_of: int, path: Path) -> None:
        """Replay an episode and write it as an animation of about `MOST_FRAMES` frames at most."""
        interval = max(1, math.ceil(episode.length / MOST_FRAMES))
        self.process.send(Reset(episode.seed))
        answer = self.process.receive()
        frames = [self.picture()]
        for step in range(episode.length):
            if isinstance(answer, Broke):
                break
            observations = np.zeros((ROWS, *np.shape(answer.observation)), np.float32)
            observations[0] = answer.observation
            seeds, steps = np.full(ROWS, episode.seed, np.uint32), np.full(ROWS, step, np.uint32)
            self.process.send(Step(np.asarray(draw_rows(policy, observations, seeds, steps, best_of))[0]))
            answer = self.process.receive()
            if (step + 1) % interval == 0 or step + 1 == episode.length:
                frames.append(self.picture())
        path.parent.mkdir(exist_ok=True)
        first, *rest = (self.image.fromarray(frame) for frame in frames)
        content = io.BytesIO()
        first.save(content, "GIF", save_all=True, append_images=rest, duration=FRAME_MILLISECONDS, loop=0)
        write_whole(path, content.getvalue())

    def picture(self) -> np.ndarray:
        """Return a picture of the environment, [height, width, 3] of bytes."""
        pixels = self.process.render()
        if isinstance(pixels, Broke) or pixels.ndim != 3:
            reason = pixels.reason if isinstance(pixels, Broke) else "it gives no picture"
            raise InputError(
                f"the environment of {self.task.name} cannot be drawn ({reason}); leave --video out, or "
                "install libegl1 or set MUJOCO_GL to osmesa or glfw if it is one of MuJoCo"
            )
        return pixels


def import_pillow() -> Any:
    """Return the image module of Pillow; raise `InputError` with the install command if it is missing."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("videos need the package pillow; install it with: pip install 'drol[report]'") from error
    return Image
