"""Replay the episodes of `drol evaluate` with the actions of an exported bundle, and compare the scores.

    drol demo
    drol export runs/demo --out bundle
    python examples/bundle_in_the_maze.py runs/demo bundle --episodes 50

drol provides the environment and the latents, so that every step can be compared with the trained policy. The actions
that move the point come from `drol_runtime`.
"""

import argparse

import drol_runtime
import jax
import numpy as np

import drol
from drol.evaluation.worker import reset


def play(run: drol.Run, bundle: str, episodes: int) -> tuple[list[bool], float]:
    """Return whether each episode succeeds, and the largest difference of an action to the trained policy's."""
    robot = drol_runtime.load(bundle)
    policy = run.policy(robot.description["step"], robot.description["seed"])
    sampler = policy.algorithm.sampler(policy.networks)
    environment = run.task.make_environment()

    @jax.jit
    def reference(observation, seed, step):
        """Return the latents and the action that `drol evaluate` draws for this step of this episode."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), seed), step)
        return sampler.draw_latents(key, robot.best_of), policy.draw(observation, key, robot.best_of)

    successes, largest = [], 0.0
    for seed in range(episodes):
        observation, step, over, success = reset(environment, seed).observation, 0, False, False
        while not over:
            latent, expected = reference(np.asarray(observation, np.float32), np.uint32(seed), np.uint32(step))
            action = robot.act(np.asarray(observation, np.float32), latent=np.asarray(latent))
            largest = max(largest, float(np.abs(action - policy.in_units_of_the_data(expected)).max()))
            observation, _, terminated, truncated, info = environment.step(action)
            step, over, success = step + 1, terminated or truncated, bool(info.get("success", False))
        successes.append(success)
    return successes, largest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("bundle")
    parser.add_argument("--episodes", type=int, default=50)
    arguments = parser.parse_args()
    run = drol.open_run(arguments.run)
    successes, largest = play(run, arguments.bundle, arguments.episodes)
    robot = drol_runtime.load(arguments.bundle)
    evaluated = drol.evaluate(run, arguments.episodes, robot.best_of, robot.description["step"])
    row = next(row for row in evaluated if row.seed == robot.description["seed"])
    print(f"bundle: {100 * np.mean(successes):.0f}% of {len(successes)} episodes; drol evaluate: {row.score:.0f}%")
    same = sum(found == episode.success for found, episode in zip(successes, row.episodes, strict=True))
    print(f"{same} of {len(successes)} end alike; the largest difference of an action is {largest:.1e}")


if __name__ == "__main__":
    main()
