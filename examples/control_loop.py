"""Run an exported policy at a fixed rate, as a robot does: NumPy and the standard library only.

    drol export runs/demo --out bundle
    python examples/control_loop.py bundle --seconds 10             # at the rate of the data, if the bundle has it
    python examples/control_loop.py bundle --rate 50 --seconds 10

`Robot` is a stand-in; replace it by your own. The loop keeps its rate and counts missed deadlines, holds the last
action if an observation is rejected or late, limits the change of actions, and prints the latency of the policy.
"""

import argparse
import time

import drol_runtime
import numpy as np


class Robot:
    """A stand-in: a point that moves by each action. Your own class talks to motors."""

    def __init__(self, observation_size: int, action_size: int):
        self.state, self.action_size = np.zeros(observation_size), action_size

    def observe(self) -> np.ndarray:
        return self.state

    def move(self, action: np.ndarray) -> None:
        size = min(len(self.state), self.action_size)
        self.state[:size] += 0.01 * action[:size]


class Loop:
    """Act `rate` times a second.

    Args:
        policy: A policy from `drol_runtime.load`.
        robot: An object with `observe` and `move`.
        rate: Actions per second.
        change_limit: Largest change of an action per step, as a share of its range.
        when_late: "hold" the last action, or "zero": the middle of the range, which stops a robot that takes speeds.
    """

    def __init__(self, policy, robot, rate: float, change_limit: float = 0.2, when_late: str = "hold"):
        self.policy, self.robot, self.period, self.when_late = policy, robot, 1 / rate, when_late
        action = policy.description["action"]
        self.low, self.high = np.asarray(action["low"], np.float32), np.asarray(action["high"], np.float32)
        self.largest_change = change_limit * (self.high - self.low)
        self.zero = (self.low + self.high) / 2
        self.action = self.zero.copy()
        self.wanted = np.zeros_like(self.action)
        self.missed, self.refused, self.latencies = 0, 0, []

    def step(self, deadline: float) -> None:
        """Observe, decide and move once. If the policy rejects the observation or is late, repeat a safe action."""
        started = time.perf_counter()
        try:
            self.policy.act(self.robot.observe(), out=self.wanted)
        except drol_runtime.InputError as error:  # NaN from a sensor or a wrong shape
            self.refused += 1
            print(f"refused: {error}")
            self.fall_back()
        finished = time.perf_counter()
        self.latencies.append(finished - started)
        if finished > deadline:
            self.missed += 1
            self.fall_back()
        change = np.clip(self.wanted - self.action, -self.largest_change, self.largest_change)
        self.action = np.clip(self.action + change, self.low, self.high)
        self.robot.move(self.action)

    def fall_back(self) -> None:
        self.wanted[:] = self.action if self.when_late == "hold" else self.zero

    def run(self, seconds: float) -> None:
        """Act until the time is over, at times that do not drift."""
        start = time.perf_counter()
        for number in range(int(seconds / self.period)):
            due = start + number * self.period
            time.sleep(max(0.0, due - time.perf_counter()))
            self.step(due + self.period)

    def summary(self) -> str:
        microseconds = 1e6 * np.sort(self.latencies)
        edges = np.geomspace(max(microseconds[0], 1), microseconds[-1] + 1, 9)
        counts, _ = np.histogram(microseconds, edges)
        bars = [
            f"{low:8.0f} to {high:8.0f} us  {'#' * int(np.ceil(50 * count / counts.max())):50s} {count}"
            for low, high, count in zip(edges[:-1], edges[1:], counts)
        ]
        middle, late = np.percentile(microseconds, [50, 99])
        return "\n".join(
            [
                f"{len(microseconds)} actions, p50 {middle:.0f} us, p99 {late:.0f} us, worst {microseconds[-1]:.0f} us",
                f"{self.missed} deadlines missed, {self.refused} observations refused, "
                f"{self.policy.outside} outside the data",
                *bars,
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("--rate", type=float, help="actions a second (default: the rate of the data)")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--when-late", choices=("hold", "zero"), default="hold")
    arguments = parser.parse_args()
    policy = drol_runtime.load(arguments.bundle, seed=0)
    rate = arguments.rate or policy.control_rate
    if rate is None:
        parser.error("the bundle does not have the rate of the data; give --rate")
    print(f"largest difference to the trained policy: {drol_runtime.check(arguments.bundle):.1e}")
    robot = Robot(policy.observation_size, policy.action_size)
    policy.act(robot.observe())  # the first call makes the buffers
    loop = Loop(policy, robot, rate, when_late=arguments.when_late)
    loop.run(arguments.seconds)
    print(loop.summary())


if __name__ == "__main__":
    main()
