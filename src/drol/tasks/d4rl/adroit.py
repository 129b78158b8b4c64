"""D4RL's hand tasks, built on gymnasium-robotics, which has the same models and observations.

Its rewards differ: the reach term of door, hammer and relocate has the wrong sign (its issue 220), and the episode does
not end when the pen drops. So this module computes D4RL's rewards from the positions in the simulation.
"""

import contextlib
import io
from typing import Any

import gymnasium
import numpy as np

with contextlib.redirect_stderr(io.StringIO()):  # its import prints a notice about these rewards
    from gymnasium_robotics.envs import adroit_hand

SIMULATORS = {
    "pen": adroit_hand.AdroitHandPenEnv,
    "door": adroit_hand.AdroitHandDoorEnv,
    "hammer": adroit_hand.AdroitHandHammerEnv,
    "relocate": adroit_hand.AdroitHandRelocateEnv,
}
STEPS_OF_SUCCESS = {"pen": 20, "door": 25, "hammer": 25, "relocate": 25}  # a success needs more steps at the goal


class Adroit(gymnasium.Wrapper):
    """A hand task; `success` is defined as in D4RL: more than 20 (pen) or 25 steps at the goal."""

    def __init__(self, hand_task: str):
        super().__init__(SIMULATORS[hand_task](reward_type="dense"))
        self.data: Any = self.env.unwrapped.data  # type: ignore[attr-defined]
        self.judge = JUDGES[hand_task]
        self.steps_of_success = STEPS_OF_SUCCESS[hand_task]
        self.steps_at_goal = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        self.steps_at_goal = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        observation, _, _, _, _ = self.env.step(action)
        reward, at_goal, dropped = self.judge(self.data)
        self.steps_at_goal += at_goal
        success = self.steps_at_goal > self.steps_of_success
        return observation, reward, dropped, False, {"success": success, "at_goal": at_goal}


def judge_pen(data: Any) -> tuple[float, bool, bool]:
    """Return the reward, whether the pen is at its goal, and whether it was dropped."""
    position = data.body("Object").xpos
    offset = distance(position, data.site("eps_ball").xpos)
    alignment = float(
        direction(data.site("object_bottom").xpos, data.site("object_top").xpos)
        @ direction(data.site("target_bottom").xpos, data.site("target_top").xpos)
    )
    near = offset < 0.075
    dropped = bool(position[2] < 0.075)
    reward = alignment - offset + 10 * (near and alignment > 0.9) + 50 * (near and alignment > 0.95) - 5 * dropped
    return reward, near and alignment > 0.95, dropped


def judge_door(data: Any) -> tuple[float, bool, bool]:
    """Return the reward, whether the door is open, and False, since the episode does not end early."""
    angle = float(data.joint("door_hinge").qpos[0])
    reward = -0.1 * distance(data.site("S_grasp").xpos, data.site("S_handle").xpos)
    reward -= 0.1 * (angle - 1.57) ** 2 + 1e-5 * float(np.sum(data.qvel**2))
    reward += 2 * (angle > 0.2) + 8 * (angle > 1.0) + 10 * (angle > 1.35)
    return reward, angle >= 1.35, False


def judge_hammer(data: Any) -> tuple[float, bool, bool]:
    """Return the reward, whether the nail is in the board, and False, since the episode does not end early."""
    hammer, head, nail = data.body("Object").xpos, data.site("tool").xpos, data.site("S_target").xpos
    depth_left = distance(nail, data.site("nail_goal").xpos)
    reward = -0.1 * distance(data.site("S_grasp").xpos, hammer) - distance(head, nail) - 10 * depth_left
    reward -= 0.01 * float(np.linalg.norm(data.qvel))
    lifted = bool(hammer[2] > 0.04 and head[2] > 0.04)
    reward += 2 * lifted + 25 * (depth_left < 0.02) + 75 * (depth_left < 0.01)
    return reward, depth_left < 0.01, False


def judge_relocate(data: Any) -> tuple[float, bool, bool]:
    """Return the reward, whether the ball is near its target, and False, since the episode does not end early."""
    ball, palm, target = data.body("Object").xpos, data.site("S_grasp").xpos, data.site("target").xpos
    left = distance(ball, target)
    reward = -0.1 * distance(palm, ball)
    if ball[2] > 0.04:
        reward += 1 - 0.5 * distance(palm, target) - 0.5 * left
    reward += 10 * (left < 0.1) + 20 * (left < 0.05)
    return reward, left < 0.1, False


JUDGES = {"pen": judge_pen, "door": judge_door, "hammer": judge_hammer, "relocate": judge_relocate}


def distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(first - second))


def direction(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    return (end - start) / np.linalg.norm(end - start)
