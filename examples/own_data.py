"""Train on your own data without an environment: write episodes, train, act.

python examples/own_data.py        about a minute on two cores; it writes to a temporary folder
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import drol


def record_episode(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Push a point on a line until it is near 0; the motor takes -3 to 3 volts.

    Returns:
        Observations [T + 1, 1], actions [T, 1] in volts, rewards [T], and whether the task ended (or the time).
    """
    generator = np.random.default_rng(seed)
    position = generator.uniform(-1, 1)
    observation, action, reward = [[position]], [], []
    while len(action) < 50:
        volts = generator.uniform(-3, 3)
        position = np.clip(position + 0.1 * volts, -2, 2)
        observation.append([position])
        action.append([volts])
        reward.append(0.0 if abs(position) < 0.1 else -1.0)
        if reward[-1] == 0.0:
            return np.array(observation), np.array(action), np.array(reward), True
    return np.array(observation), np.array(action), np.array(reward), False


def main(folder: Path, steps: int = 2_000) -> float:
    """Return the share of starts from which the policy pushes the point towards 0."""
    os.environ["DROL_DATA"] = str(folder / "datasets")  # the folder of `files/NAME`
    named = {"observation_dimensions": drol.Dimensions(("position",), ("m",))}  # `run.policy().observation_names`
    with drol.EpisodeWriter("line", action_low=-3, action_high=3, **named) as writer:
        for seed in range(300):
            writer.add(*record_episode(seed))
    # `drol data check line` now shows the recorded data, its interpretation and suspicious values.

    algorithm = drol.DROL(hidden_sizes=(64, 64), num_candidates=8, bc_weight=0.1, batch_size=128)
    config = drol.RunConfig(algorithm=algorithm, task="files/line", steps=steps, log_interval=500)
    run = drol.train(config, folder / "run", quiet=True)

    starts = np.linspace(-1, 1, 20)[:, None]
    volts = run.policy().act({"position": starts[:, 0]}, seed=0)  # in volts, one per start
    share = float((np.sign(volts) == -np.sign(starts)).mean())
    print(f"pushed towards 0 from {share:.0%} of the starts")
    return share


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
