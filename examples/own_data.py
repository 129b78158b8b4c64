"""Train on data of your own: write episodes, look at them, learn from them. No environment is needed.

python examples/own_data.py        about a minute on two cores; everything goes to a folder that is removed
"""

import os
import tempfile
from pathlib import Path

import jax
import numpy as np

import drol
from drol.data.store.audit import Statistics, count_rows, notes, summary
from drol.data.store.episode_writer import EpisodeWriter
from drol.data.store.writer import StoredDataset


def record_episode(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """A point on a line that is pushed about until it is near 0; the motor takes -3 to 3 volts."""
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
            return np.array(observation), np.array(action), np.array(reward), True  # the task ended
    return np.array(observation), np.array(action), np.array(reward), False  # the time was over


def main(folder: Path, steps: int = 2_000) -> float:
    """The share of starts from which the policy pushes the point towards 0."""
    os.environ["DROL_DATA"] = str(folder / "datasets")
    with EpisodeWriter("line", action_low=-3, action_high=3) as writer:
        for seed in range(300):
            writer.add(*record_episode(seed))

    stored = StoredDataset.open("line")
    statistics = Statistics()
    count_rows(stored.arrays("train"), statistics)
    print("\n".join([*summary(statistics), "", *notes(statistics, None, None)]))

    algorithm = drol.DROL(hidden_sizes=(64, 64), num_candidates=8, bc_weight=0.1, batch_size=128)
    config = drol.RunConfig(algorithm=algorithm, task="files/line", steps=steps, log_interval=500)
    drol.train(config, folder / "run", quiet=True)

    policy = drol.Policy.load(folder / "run" / "policies" / f"{steps:09d}")
    starts = np.linspace(-1, 1, 20)[:, None]
    unit = policy.act(starts, jax.random.split(jax.random.key(0), len(starts)))
    volts = stored.box.from_unit(np.asarray(unit))  # as the motor wants them
    share = float((np.sign(volts) == -np.sign(starts)).mean())
    print(f"pushed towards 0 from {share:.0%} of the starts")
    return share


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
