"""Define a task source outside the package: data, an environment and a score under a name.

python examples/new_task_source.py        about a minute on two cores; it writes to a temporary folder
"""

import functools
import tempfile
from pathlib import Path

import gymnasium
import numpy as np

import drol

STEP, NEAR, HORIZON = 0.2, 0.1, 20
GOALS = {"line/left": -0.5, "line/right": 0.5}


class Line(gymnasium.Env):
    """A point on a line that is pushed towards a goal; an action of 1 pushes it by 0.2."""

    observation_space = gymnasium.spaces.Box(-2, 2, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, goal: float):
        self.goal, self.position, self.steps = goal, 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.position, self.steps = self.np_random.uniform(-1, 1), 0
        return np.array([self.position], np.float32), {}

    def step(self, action):
        self.position = float(np.clip(self.position + STEP * float(action[0]), -2, 2))
        self.steps += 1
        distance = abs(self.position - self.goal)
        observation, arrived = np.array([self.position], np.float32), distance < NEAR
        return observation, -distance, arrived, self.steps >= HORIZON, {"success": arrived}


class LineTasks(drol.TaskSource):
    """Two tasks: a goal on the left and one on the right."""

    name = "line"

    def task_names(self) -> list[str]:
        return list(GOALS)

    def make_environment(self, name: str):
        return functools.partial(Line, GOALS[name])

    def load(self, name: str, dataset_path: Path | None = None) -> drol.Task:
        if dataset_path is not None:
            raise drol.InputError(f"{name} generates its data; remove --dataset {dataset_path}")
        return drol.task_from(random_data(Line(GOALS[name])), name, self.make_environment(name), score="success")


def random_data(environment: Line, episodes: int = 400) -> drol.Dataset:
    """Record episodes of random actions."""
    steps = {name: [] for name in ("observation", "action", "reward", "terminal", "timeout", "next_observation")}
    generator = np.random.default_rng(0)
    for seed in range(episodes):
        observation, _ = environment.reset(seed=seed)
        ended = False
        while not ended:
            action = generator.uniform(-1, 1, 1)
            following, reward, terminal, timeout, _ = environment.step(action)
            row = (observation, action, reward, terminal, timeout and not terminal, following)
            for values, value in zip(steps.values(), row, strict=True):
                values.append(value)
            observation, ended = following, terminal or timeout
    return drol.Dataset.from_arrays(**steps)


def main(folder: Path, steps: int = 500) -> float:
    """Return the success rate in percent of a policy that learned from random actions."""
    drol.register_task_source(LineTasks())  # from here on, the names of its tasks are known

    algorithm = drol.DROL(hidden_sizes=(64, 64), num_candidates=8, bc_weight=0.03, batch_size=128, learning_rate=1e-3)
    config = drol.RunConfig(algorithm, "line/right", steps=steps, evaluation_episodes=10)
    run = drol.train(config, folder / "run", quiet=True)
    print(f"after {steps} updates it reaches the goal in {run.scores[0]:.0f}% of 10 episodes")

    # The folder only holds the name of the task; any program that registers the source can use the run again.
    row = drol.evaluate(folder / "run", episodes=20)[0]
    print(f"loaded again, in {row.score:.0f}% of 20 episodes")
    return row.score


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
