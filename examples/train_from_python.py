"""Use drol from Python: train, resume, evaluate with and without a simulator, report, act.

python examples/train_from_python.py        about a minute on two cores; it writes to a temporary folder
"""

import tempfile
from pathlib import Path

import numpy as np

import drol


def main(folder: Path, steps: int = 600) -> drol.Run:
    # The embedded maze with small networks; any flag of `drol train` is a keyword.
    config = drol.settings(
        "pointmaze-medium-navigate-singletask-task1-v0",
        "drol",
        preset="laptop",
        seeds=(0, 1),
        steps=steps,
        hidden_sizes=(32, 32),
        evaluation_interval=steps,
        evaluation_episodes=2,
    )
    drol.train(config, folder)
    run = drol.train(config, folder)  # the same call again resumes; this run is finished, so nothing is trained

    # The evaluations are typed rows. With pandas installed, `run.evaluations.to_pandas()` returns a table.
    for row in run.evaluations:
        print(f"step {row.step:,}, seed {row.seed}: {row.score:.0f}% of {len(row.episodes)} episodes succeed")
    print(f"last actor loss: {run.metrics[-1].values['actor_loss']:.3f}")

    best = drol.evaluate(run, episodes=2, best_of=4)  # the critic chooses among four actions
    print(f"best of 4: {best[0].score:.0f}%")
    offline = drol.evaluate_offline(run, updates=50)  # without a simulator; real evaluations use 5,000 updates
    print(f"actions outside the support of the data: {offline[0].figures['outside_support']:.0%}")
    print(f"page: {drol.report(run)}")

    # A policy takes raw observations and returns actions in the units of the data.
    policy = drol.load_policy(folder)  # the newest step, the first seed
    observation = np.zeros(2)
    print(f"one action: {policy.act(observation, seed=0)}; a batch: {policy.act(np.zeros((3, 2))).shape}")
    control = policy.for_control(seed=0)  # compiled for one observation at a time, for control loops
    for _ in range(3):
        observation = observation + 0.1 * control(observation)
    print(f"after three steps of control: {observation}")
    return run


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name) / "run")
