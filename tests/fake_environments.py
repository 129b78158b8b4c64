"""Environments for the tests. No jax here, because every process of an evaluator imports this."""

import os
import random
import signal
import time

import numpy as np


class Space:
    """Stands for the action space."""

    def seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def sample(self) -> np.ndarray:
        return self.generator.uniform(-1, 1, 2)


class Walk:
    """A point moved by actions and noise; it observes its position and the time.

    `fault` happens in the episode with the seed `seed`: in its reset, or in its third step.
    """

    def __init__(self, fault: str = "healthy", seed: int = -1):
        self.fault, self.faulty_seed = fault, seed
        self.action_space = Space()

    def reset(self, seed: int):
        self.faulty = seed == self.faulty_seed
        if self.faulty and self.fault == "raises in reset":
            raise RuntimeError("no such maze")
        self.generator = np.random.default_rng(seed)
        self.length = 6 + seed % 4
        self.steps = 0
        self.position = self.noise() + self.action_space.sample()
        return self.observe(), {}

    def step(self, action: np.ndarray):
        self.steps += 1
        if self.faulty and self.steps == 3:
            self.break_down()
        self.position = self.position + 0.5 * action + 0.1 * self.noise()
        done = self.steps == self.length
        reward = -float(np.linalg.norm(self.position))
        return self.observe(), reward, False, done, {"success": done and self.position[0] > 0}

    def break_down(self) -> None:
        if self.fault == "raises in step":
            raise ValueError("the simulation is unstable")
        if self.fault == "exits":
            os._exit(3)
        if self.fault == "hangs":
            time.sleep(3600)
        if self.fault == "is interrupted":
            os.kill(os.getpid(), signal.SIGINT)

    def noise(self) -> np.ndarray:
        if self.fault == "global generator":
            return np.random.normal(size=2)
        return self.generator.normal(size=2)

    def observe(self) -> np.ndarray:
        return np.append(self.position, self.steps / 10)


def draws_globally(environment) -> bool:
    """Return whether steps of an environment draw from the global generators of Python or NumPy."""
    before = random.getstate(), str(np.random.get_state(legacy=False))
    for _ in range(5):
        environment.step(environment.action_space.sample())
    return before != (random.getstate(), str(np.random.get_state(legacy=False)))


def short_pointmaze():
    """A real environment whose episodes end after 120 steps."""
    from gymnasium.wrappers import TimeLimit

    from drol.tasks.ogbench.environment import make_ogbench

    return TimeLimit(make_ogbench("pointmaze-medium-singletask-task1-v0"), 120)


class Stripes:
    """Pictures of stripes that move one pixel each step; a single one does not tell whether to the left or right.

    The first number of the action should have the sign of the direction.
    """

    def __init__(self, length: int = 6):
        self.length = length
        self.action_space = Space()

    def reset(self, seed: int):
        self.generator = np.random.default_rng(seed)
        self.direction = int(self.generator.choice([-1, 1]))
        self.phase = int(self.generator.integers(4))
        self.steps = 0
        return self.draw(), {}

    def step(self, action: np.ndarray):
        self.steps += 1
        self.phase += self.direction
        right = bool(action[0] * self.direction > 0)
        return self.draw(), float(right), False, self.steps == self.length, {"success": right}

    def draw(self) -> np.ndarray:
        bright = (np.arange(8) - self.phase) % 4 < 2
        noise = self.generator.integers(0, 50, (8, 8, 1))
        return (200 * bright[None, :, None] + noise).astype(np.uint8)  # [height, width, channels]
