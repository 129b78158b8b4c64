"""Small runs, policies and a dataset of every release, which each later version must read; and what they answered then.

    python tests/stored_files.py        writes the files of this version to tests/stored/VERSION

A release does that once. The files of earlier releases are never regenerated: they test that old files still work.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import jax
import numpy as np

import drol
from drol.algorithms import ALGORITHMS, Algorithm
from drol.checkpoints import saved_steps
from drol.runs.config import RunConfig
from drol.runs.directory import LOCK
from drol.runs.run import Run

STORED = Path(__file__).parent / "stored"
TASK = "files/toy"
STEPS, MORE_STEPS = 2, 3  # of the stored training, and of the resumed training
RESUMED = ("drol",)  # resuming compiles, so only one method resumes; the checkpoints of all are read
OBSERVATIONS = np.asarray([[0.3, -1.0, 2.0], [0.0, 0.5, -0.5]])


def releases() -> list[Path]:
    return sorted(path for path in STORED.iterdir() if path.is_dir())


def tiny_algorithm(name: str) -> Algorithm:
    kind = ALGORITHMS[name]
    small = {"hidden_sizes": (4,), "batch_size": 8, "num_candidates": 2, "num_samples": 2, "flow_steps": 2}
    known = kind().to_dict()
    return kind.from_dict({key: value for key, value in small.items() if key in known})


def config_of(name: str, steps: int) -> RunConfig:
    intervals = {"log_interval": 1, "evaluation_interval": 2, "checkpoint_interval": 2}
    seeds = (0, 3) if name == "drol" else (0,)
    return RunConfig(tiny_algorithm(name), task=TASK, seeds=seeds, steps=steps, **intervals)


def actions_of(run: Run) -> list:
    """Return the actions of the newest policy of each seed, to 8 digits."""
    return [
        np.round(run.policy(seed=seed).act(OBSERVATIONS, seed=1).astype(float), 8).tolist() for seed in run.config.seeds
    ]


def make_dataset(root: Path) -> None:
    generator = np.random.default_rng(0)
    with drol.EpisodeWriter("toy", root, action_low=[-2, -2], action_high=[2, 2], validation=0.25) as writer:
        for _ in range(8):
            action = generator.uniform(-2, 2, (5, 2))
            writer.add(generator.normal(size=(6, 3)), action, reward=generator.normal(size=5), terminal=True)


def make(folder: Path) -> None:
    """Make the dataset, a run of every method and the numbers of one version."""
    make_dataset(folder / "datasets")
    os.environ["DROL_DATA"] = str(folder / "datasets")
    answers = {}
    for name in ALGORITHMS:
        path = folder / "runs" / name
        run = drol.train(config_of(name, STEPS), path, quiet=True)
        shutil.rmtree(path / "checkpoints" / "000000000")
        shutil.rmtree(path / "policies" / "000000000")
        (path / LOCK).unlink()
        answers[name] = {"fingerprint": run.task.train.fingerprint(), "actions": actions_of(run)}
        if name in RESUMED:
            longer = drol.train(config_of(name, MORE_STEPS), shutil.copytree(path, folder / "longer"), quiet=True)
            last = [row for row in longer.metrics if row.step == MORE_STEPS]
            answers[name] |= {"resumed": actions_of(longer), "metrics": [dict(row.values) for row in last]}
            assert saved_steps(longer.directory.checkpoints)[-1] == MORE_STEPS
            shutil.rmtree(folder / "longer")
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    jax.config.update("jax_disable_most_optimizations", True)  # faster compilation, because each program runs once
    target = STORED / drol.__version__
    shutil.rmtree(target, ignore_errors=True)
    make(target)
    sys.stdout.write(f"made {target}\n")
