"""What `drol bench` measures in fresh processes: memory, compile time, evaluation on one, two and all cores."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jax

from drol.algorithms import Algorithm
from drol.errors import InputError
from drol.experiments.bench.timers import Say
from drol.training.reproducibility import available_cores

ROWS = 1_000_001  # a million transitions
FIRST_EPISODES = 8  # which tell how fast a method is
EVALUATION_SECONDS = 6.0  # how long one evaluation may take; a slow method plays fewer episodes


class Child:
    """A process that answers requests; see `bench_child`."""

    def __init__(self, cache: Path | None = None):
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # gymnasium's, one for each environment
        if cache is not None:
            environment |= {
                "JAX_COMPILATION_CACHE_DIR": str(cache),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
            }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drol.experiments.bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise InputError(
                f"the process that measures {request['what']} ended with exit code {self.process.wait()}; "
                "was it out of memory?"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise InputError(f"cannot measure {request['what']}: {answer['error']}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process: it leaves when nobody can ask any more, or by force if it is busy."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def description(name: str, algorithm: Algorithm) -> dict[str, Any]:
    return {"algorithm": name, "hyperparameters": algorithm.to_dict()}


def measure_start(algorithms: Mapping[str, Algorithm], rows: int = ROWS, say: Say | None = None) -> dict[str, Any]:
    """Memory of a process that trains, and the seconds to its first update with an empty cache and with a full one."""
    answers = {}
    for number, (name, algorithm) in enumerate(algorithms.items()):
        with tempfile.TemporaryDirectory() as folder:
            both = []
            for attempt, words in enumerate(("with an empty cache", "from the cache")):
                if say:
                    say(f"{name}: start {words}", 2 * number + attempt, 2 * len(algorithms))
                with Child(cache=Path(folder)) as child:
                    both.append(child.ask(what="train", rows=rows, **description(name, algorithm)))
        cold, cached = both
        answers[name] = {
            "compile_seconds": cold["seconds_to_first_update"],
            "compile_seconds_from_cache": cached["seconds_to_first_update"],
            "peak_memory_bytes": cold["peak_memory_bytes"],
            "peak_memory_bytes_from_cache": cached["peak_memory_bytes"],
            "peak_device_memory_bytes": cold["peak_device_memory_bytes"],
            "dataset_bytes": cold["dataset_bytes"],
            "memory_stages": cold["memory_stages"],
        }
    return answers


def cores_to_measure() -> list[list[int]]:
    """One core, two and all of those that this process may use; all alone where a process cannot be bound to cores."""
    if not hasattr(os, "sched_getaffinity"):
        return [list(range(os.cpu_count() or 1))]
    cores = sorted(os.sched_getaffinity(0))
    return [cores[:count] for count in sorted({1, min(2, len(cores)), len(cores)})]


def measure_evaluation(
    algorithms: Mapping[str, Algorithm],
    task: str,
    episodes: int,
    rounds: int,
    seconds: float = EVALUATION_SECONDS,
    cores: Sequence[list[int]] | None = None,
    say: Say | None = None,
) -> dict[str, dict[str, Any]]:
    """Environment steps a second in an evaluation of every method, for each number of cores; starting is not counted.

    The processes for all numbers of cores are there at once and take turns.
    """
    cores = cores or cores_to_measure()
    rates: dict[str, dict[str, list[float]]] = {name: {str(len(some)): [] for some in cores} for name in algorithms}
    played = dict.fromkeys(algorithms, episodes)
    children = {str(len(some)): Child() for some in cores}
    turns = [(name, count) for name in algorithms for count in children]
    try:
        for count, some in zip(children, cores, strict=True):
            children[count].ask(what="environments", task=task, cores=some)
        for name, count in turns:  # how many episodes even the slowest number of cores can play in time
            tell(say, "starting", name, count, 0, rounds * len(turns))
            asked = min(FIRST_EPISODES, episodes)
            answer = children[count].ask(what="evaluate", episodes=asked, **description(name, algorithms[name]))
            possible = asked * seconds / answer["seconds"]
            played[name] = int(min(played[name], max(asked, possible)))
        for number in range(rounds):
            for place, (name, count) in enumerate(turns):
                done = number * len(turns) + place
                tell(say, f"round {number + 1} of {rounds}", name, count, done, rounds * len(turns))
                request = description(name, algorithms[name])
                answer = children[count].ask(what="evaluate", episodes=played[name], **request)
                rates[name][count].append(answer["steps"] / answer["seconds"])
    finally:
        for child in children.values():
            child.stop()
    return {
        name: {
            "evaluation_steps_per_second": {count: statistics.median(each) for count, each in found.items()},
            "evaluation_episodes": played[name],
            "evaluation_gain_of_two_cores": gain(found),
        }
        for name, found in rates.items()
    }


def tell(say: Say | None, words: str, name: str, count: str, done: int, total: int) -> None:
    if say:
        say(f"{words}, {name} on {count} core{'s' * (count != '1')}", done, total)


def gain(rates: Mapping[str, Sequence[float]]) -> float | None:
    """How many times as many steps two cores make as one, where both were measured."""
    if not {"1", "2"} <= rates.keys():
        return None
    return statistics.median(two / one for one, two in zip(rates["1"], rates["2"], strict=True))


def describe_machine() -> dict[str, Any]:
    """What is measured, and with what; a GPU that jax cannot use is named as well."""
    device = jax.devices()[0]
    cores = available_cores()
    words = f"CPU with {cores} core{'s' * (cores != 1)}"
    if device.platform != "cpu":
        words = f"{device.platform.upper()} {device.device_kind} and a {words}"
    elif Path("/proc/driver/nvidia/gpus").exists():
        words += "; there is a GPU that jax does not use: pip install 'drol[cuda12]'"
    return {"device": words, "platform": device.platform, "cores": cores, "jax": jax.__version__}
