"""Measure the processor time of an evaluation step as a multiple of the time of a bare environment step.

    taskset -c 0 python benchmarks/evaluation.py --json results/evaluation.json

The bare step is a loop over `environment.step` with the actions that the policy took. Bare steps and evaluations
alternate. Processor time counts all processes, so other programs on the machine disturb it less than wall-clock time.
"""

import os

CORES = os.sched_getaffinity(0)

import argparse
import functools
import json
import statistics
import time
from pathlib import Path

import gymnasium
import jax
import numpy as np

from drol.algorithms.drol import DROL
from drol.evaluation.episodes import ROWS, Evaluator, draw_rows
from drol.evaluation.worker import reset
from drol.machine import available_cores
from drol.tasks.ogbench.loading import environment_maker
from drol.tasks.ogbench.names import find_name
from drol.transition import Spec
from drol_reproduction.bench.timers import make_policy

MAZE, CUBE = "pointmaze-medium-navigate-singletask-task1-v0", "cube-single-play-singletask-task2-v0"
CASES = {  # name -> task, hyperparameters, steps of an episode
    "point maze, laptop preset": (MAZE, DROL.presets["laptop"], 200),
    "point maze, paper's size": (MAZE, {}, 200),
    "cube, paper's size": (CUBE, {}, 40),
}
REPLAYED = 3  # episodes whose actions are replayed as bare steps


class CutShort(gymnasium.Wrapper):
    """An environment with a limit on the steps of an episode."""

    def __init__(self, environment, steps):
        super().__init__(environment)
        self.steps, self.taken = steps, 0

    def reset(self, **options):
        self.taken = 0
        return self.env.reset(**options)

    def step(self, action):
        self.taken += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated or self.taken >= self.steps, info


def cut_short(make_environment, steps):
    return CutShort(make_environment(), steps)


def record_actions(environment, policy, seed):
    """Play an episode as `Evaluator` does; return its actions."""
    observation, actions, done = reset(environment, seed).observation, [], False
    while not done:
        rows = np.zeros((ROWS, *observation.shape), np.float32)
        rows[0] = observation
        seeds, steps = np.full(ROWS, seed, np.uint32), np.full(ROWS, len(actions), np.uint32)
        actions.append(np.asarray(draw_rows(policy, rows, seeds, steps, None))[0])
        observation, _, terminated, truncated, _ = environment.step(actions[-1])
        done = terminated or truncated
    return actions


def bare_seconds(environment, recorded):
    """Return the processor time of one bare step."""
    total = 0.0
    for seed, actions in enumerate(recorded):
        reset(environment, seed)
        start = time.process_time()
        for action in actions:
            environment.step(action)
        total += time.process_time() - start
    return total / sum(map(len, recorded))


def used_seconds(evaluator):
    """Return the processor time so far of this process and of the evaluator's processes."""
    started = [process.worker[0].pid for process in evaluator.processes if process.worker]
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in started]
    ticks = sum(int(user) + int(system) for *_, user, system in (each[:13] for each in stats))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def measure(case, episodes, rounds):
    task, settings, steps = CASES[case]
    make = functools.partial(cut_short, environment_maker(find_name(task)), steps)
    environment = make()
    environment.action_space.seed(0)
    observation, _ = environment.reset(seed=0)
    policy = make_policy(DROL(**settings), Spec(observation.shape, environment.action_space.sample().size))
    recorded = [record_actions(environment, policy, seed) for seed in range(REPLAYED)]
    found = {"bare_ms": [], "evaluation_ms": [], "ratio": []}
    with Evaluator(make, share=find_name(task).shares_process) as evaluator:
        evaluator.run(policy, episodes)  # starts the processes
        for _ in range(rounds):
            before = bare_seconds(environment, recorded)
            start = used_seconds(evaluator)
            played = evaluator.run(policy, episodes)
            seconds = (used_seconds(evaluator) - start) / sum(episode.length for episode in played)
            bare = (before + bare_seconds(environment, recorded)) / 2
            for name, value in zip(found, (1e3 * bare, 1e3 * seconds, seconds / bare), strict=True):
                found[name].append(value)
    medians = {name: round(statistics.median(values), 4) for name, values in found.items()}
    return {"task": task, "episodes": episodes, "cores": available_cores(), "rounds": rounds, **medians}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parsed = parser.parse_args()
    jax.devices()
    os.sched_setaffinity(0, CORES)  # jax, when it starts, resets the affinity to all cores
    found = {}
    for case in parsed.cases:
        found[case] = measure(case, parsed.episodes, parsed.rounds)
        print(case, json.dumps(found[case]), flush=True)
    if parsed.json:
        parsed.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
