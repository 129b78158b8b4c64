"""Stack the last frames of an environment.

This module does not import jax, because environment processes import it.
"""

import collections
from typing import Any

import numpy as np


def stack_frames(environment: Any, count: int) -> Any:
    """Return the environment with its last `count` frames as the observation, stacked as in `Dataset`.

    If `count` is 1, return the environment itself.
    """
    return StackedFrames(environment, count) if count > 1 else environment


class StackedFrames:
    """An environment whose observations are its last frames, joined along their last axis, oldest first.

    At the start of an episode, the first frame is repeated.
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
