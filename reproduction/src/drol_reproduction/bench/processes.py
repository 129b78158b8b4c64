"""The parts `start` and `evaluation` of a bench, measured in new processes."""

import contextlib
import multiprocessing
import os
import signal
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Self

from drol.algorithms import Algorithm
from drol.errors import InputError
from drol.evaluation.environment_process import without_main_module
from drol.machine import available_cores
from drol_reproduction.bench import fresh_process
from drol_reproduction.bench.against import in_one_line
from drol_reproduction.bench.timers import Say

ROWS = 1_000_001  # a million transitions
FIRST_EPISODES = 8  # to estimate the speed of a method
EPISODES, EVALUATION_SECONDS = 50, 6.0  # defaults of one evaluation; the lower limit holds


class Child:
    """A new process for measurements, without this process's memory and compiled programs."""

    def __init__(self, cores: Sequence[int] | None = None):
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), fresh_process.prepare, (cores,))
        self.process: int = self.ask("the start of a process", os.getpid)

    def ask(self, what: str, function: Callable, *arguments: Any) -> Any:
        """Return the result of a function in the process; `what` names the measurement in error messages."""
        try:
            with without_main_module():  # the first call starts the process
                future = self.pool.submit(function, *arguments)
            return future.result()
        except BrokenProcessPool as error:
            raise InputError(
                f"the process that measures {what} ended, perhaps because memory ran out; close other programs or "
                "measure fewer parts"
            ) from error
        except Exception as error:
            raise InputError(f"cannot measure {what}: {in_one_line(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # the process may still be busy
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        self.pool.shutdown()


def measure_start(
    algorithms: Mapping[str, Algorithm], rows: int = ROWS, say: Say = lambda _: None
) -> dict[str, dict[str, Any]]:
    """Measure memory and the time to the first update of each method, with an empty and a filled program cache."""
    answers = {}
    for name, algorithm in algorithms.items():
        both = []
        with tempfile.TemporaryDirectory() as folder:
            for words in ("with an empty cache", "from the cache"):
                say(f"start {words}, {name}")
                with Child() as process:
                    both.append(process.ask("a start", fresh_process.train, algorithm, rows, Path(folder)))
        cold, cached = both
        answers[name] = {
            "compile_seconds": cold["seconds_to_first_update"],
            "compile_seconds_from_cache": cached["seconds_to_first_update"],
            "peak_memory_bytes": cold["peak_memory_bytes"],
            "peak_memory_bytes_from_cache": cached["peak_memory_bytes"],
            "peak_device_memory_bytes": cold["peak_device_memory_bytes"],
        }
    return answers


def cores_to_measure() -> list[list[int]]:
    """Return one, two and all of this process's cores; only all if the system cannot bind processes to cores."""
    if not hasattr(os, "sched_getaffinity"):
        return [list(range(available_cores()))]
    cores = sorted(os.sched_getaffinity(0))
    return [cores[:count] for count in sorted({1, min(2, len(cores)), len(cores)})]


def measure_evaluation(
    algorithms: Mapping[str, Algorithm],
    task: str,
    rounds: int,
    episodes: int | None = None,
    cores: Sequence[list[int]] | None = None,
    say: Say = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """Measure environment steps per second of every method, for each number of cores, without the start.

    The processes for all numbers of cores exist at the same time and take turns. By default, a slow method plays fewer
    episodes.
    """
    with contextlib.ExitStack() as stack:
        children = {str(len(some)): stack.enter_context(Child(some)) for some in cores or cores_to_measure()}
        rates: dict[str, dict[str, list[float]]] = {name: {count: [] for count in children} for name in algorithms}
        played = dict.fromkeys(algorithms, episodes or EPISODES)

        def play(words: str, name: str, count: str, number: int) -> dict[str, float]:
            say(f"{words}, {name} on {count} core{'s' * (count != '1')}")
            request = (task, name, algorithms[name], number)
            return children[count].ask("an evaluation", fresh_process.evaluate, *request)

        turns = [(name, count) for name in algorithms for count in children]
        for name, count in turns:  # the episodes that the slowest number of cores can play in time
            first = min(FIRST_EPISODES, played[name])
            seconds = play("starting environments", name, count, first)["seconds"]
            if episodes is None:
                played[name] = int(min(played[name], max(first, first * EVALUATION_SECONDS / seconds)))
        for number in range(rounds):
            for name, count in turns:
                answer = play(f"round {number + 1} of {rounds}", name, count, played[name])
                rates[name][count].append(answer["steps"] / answer["seconds"])
    return {
        name: {
            "evaluation_steps_per_second": {count: statistics.median(each) for count, each in found.items()},
            "evaluation_episodes": played[name],
            "evaluation_gain_of_two_cores": gain_of_two_cores(found),
        }
        for name, found in rates.items()
    }


def gain_of_two_cores(rates: Mapping[str, Sequence[float]]) -> float | None:
    """Return the speed on two cores divided by the speed on one core, if both were measured."""
    if not {"1", "2"} <= rates.keys():
        return None
    return statistics.median(two / one for one, two in zip(rates["1"], rates["2"], strict=True))
