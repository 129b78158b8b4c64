"""Measurements of `drol bench` in new processes: compiling, memory, evaluation on a few cores.

This module imports jax late, after the choice of cores: jax starts as many threads as the process has cores.
"""

import functools
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIMULATORS = ("gymnasium", "mujoco")  # packages that the environment processes share; missing ones are skipped
STEPS = 200  # most steps of an episode, so that a slow method on a long task does not take an hour
EVALUATIONS: dict[str, "Evaluation"] = {}  # of this process, by task


def prepare(cores: Sequence[int] | None) -> None:
    """Set up a new process: select its cores, ignore Ctrl-C, and keep prints out of the results."""
    if cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent handles it
    os.dup2(2, 1)
    os.environ["PYTHONWARNINGS"] = "ignore"  # gymnasium warns once per environment process


def train(algorithm: Any, rows: int, cache: Path) -> dict[str, Any]:
    """Compile a method and train it for a few updates on `rows` rows; return times and memory."""
    import jax

    from drol.data.random_dataset import random_dataset
    from drol.training.compiled import init_seeds, seed_keys, zero_totals
    from drol.training.updates import Updates

    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    dataset, keys = random_dataset(rows), seed_keys((0,))
    start = time.perf_counter()
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    updates = Updates(algorithm, dataset, keys, last_step=6)
    states, totals = jax.block_until_ready(updates.run(states, totals, 1, 1))
    seconds = time.perf_counter() - start
    jax.block_until_ready(updates.run(states, totals, 2, 6))
    statistics = jax.local_devices()[0].memory_stats() or {}
    return {
        "seconds_to_first_update": seconds,
        "peak_memory_bytes": peak_memory(),
        "peak_device_memory_bytes": statistics.get("peak_bytes_in_use"),
    }


def peak_memory() -> int:
    """Return the peak memory of this process in bytes.

    On Linux, `ru_maxrss` of a new process includes the parent's memory; the value in /proc does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def evaluate(task: str, name: str, algorithm: Any, episodes: int) -> dict[str, float]:
    """Play episodes of a task with a new policy of a method; return the number of steps and their seconds."""
    if task not in EVALUATIONS:
        EVALUATIONS[task] = Evaluation(task)
    return EVALUATIONS[task].run(name, algorithm, episodes)


class Evaluation:
    """Environments of a task on the cores of this process, and a policy of each method."""

    def __init__(self, task: str):
        from drol.errors import InputError
        from drol.evaluation.episodes import Evaluator
        from drol.tasks import find_source
        from drol.transition import Spec

        make_environment = find_source(task).make_environment(task)
        if make_environment is None:
            raise InputError(f"the task {task} has no environment to step")
        environment = make_environment()
        environment.action_space.seed(0)
        observation, _ = environment.reset(seed=0)  # observation_space does not include stacked frames
        self.spec = Spec(observation.shape, environment.action_space.sample().size)
        make, share = functools.partial(cut_short, make_environment, STEPS), find_source(task).shares_process(task)
        self.evaluator = Evaluator(make, modules=SIMULATORS, share=share)
        self.policies: dict[str, Any] = {}
        self.played: set[int] = set()  # numbers of episodes played so far; a new number may start processes

    def run(self, name: str, algorithm: Any, episodes: int) -> dict[str, float]:
        """Play episodes; the first time, play them twice, so that the timed run starts no processes."""
        from drol_reproduction.bench.timers import make_policy

        if name not in self.policies or episodes not in self.played:
            self.policies.setdefault(name, make_policy(algorithm, self.spec))
            self.evaluator.run(self.policies[name], episodes)
            self.played.add(episodes)
        start = time.perf_counter()
        played = self.evaluator.run(self.policies[name], episodes)
        seconds = time.perf_counter() - start
        failures = [episode.failure for episode in played if episode.failure]
        if failures:
            raise RuntimeError(failures[0])
        return {"steps": sum(episode.length for episode in played), "seconds": seconds}


def cut_short(make_environment: Callable[[], Any], steps: int) -> "CutShort":
    return CutShort(make_environment(), steps)


class CutShort:
    """An environment with a limit on the steps of an episode."""

    def __init__(self, environment: Any, steps: int):
        self.environment, self.steps, self.step_number = environment, steps, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.environment, name)

    def reset(self, **options: Any) -> Any:
        self.step_number = 0
        return self.environment.reset(**options)

    def step(self, action: Any) -> tuple[Any, ...]:
        self.step_number += 1
        observation, reward, terminated, truncated, info = self.environment.step(action)
        return observation, reward, terminated, truncated or self.step_number >= self.steps, info
