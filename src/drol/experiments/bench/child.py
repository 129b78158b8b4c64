"""The fresh process in which `drol bench` measures what needs one: compiling, memory, evaluation on a few cores.

Run as `python -m drol.experiments.bench.child`; a line of JSON is a request, a line of JSON its answer. jax is imported
after the cores are chosen, so that it starts as many threads as there are cores, and not at all where environments run.
"""

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 200  # after which an episode is cut, so that a slow method on a long task does not take an hour
FEW_UPDATES = 5


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")  # what libraries print must not reach the answers
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that asks decides
    evaluation: Evaluation | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["what"] == "train":
                answer = train(request)
            elif request["what"] == "environments":
                evaluation = Evaluation(request)
                answer = {}
            else:
                assert evaluation is not None, "evaluate before environments"
                answer = evaluation.run(request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
        print(json.dumps(answer), file=answers, flush=True)
    if evaluation is not None:
        evaluation.evaluator.stop()


def train(request: dict[str, Any]) -> dict[str, Any]:
    """Compile a method, make a few updates of it on a large dataset, and say what that took."""
    stages = {"python": resident()[0]}
    import jax

    from drol.experiments.bench.timers import random_dataset
    from drol.training.compiled import init_seeds, seed_keys, zero_totals
    from drol.training.updates import Updates

    jax.devices()
    stages["jax"] = resident()[0]
    dataset = random_dataset(request["rows"])
    stages["data"] = resident()[0]
    stages["data_peak"] = resident()[1]
    algorithm = algorithm_of(request)
    keys = seed_keys((0,))
    start = time.perf_counter()
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    updates = Updates(algorithm, dataset, keys, last_step=1 + FEW_UPDATES)
    states, totals = jax.block_until_ready(updates.run(states, totals, 1, 1))
    seconds = time.perf_counter() - start
    stages["first_update"] = resident()[0]
    stages["first_update_peak"] = resident()[1]
    jax.block_until_ready(updates.run(states, totals, 2, 1 + FEW_UPDATES))
    statistics = jax.local_devices()[0].memory_stats() or {}
    return {
        "seconds_to_first_update": seconds,
        "peak_memory_bytes": resident()[1],
        "peak_device_memory_bytes": statistics.get("peak_bytes_in_use"),
        "dataset_bytes": dataset.nbytes,
        "memory_stages": stages,
    }


def resident() -> tuple[int | None, int | None]:
    """Memory that this process has now, and the most that it had, in bytes, where the system tells.

    Linux counts the parent's memory in the `ru_maxrss` of a new process; the figure in /proc is the process's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        now, most = (1024 * int(lines[name].split()[0]) for name in ("VmRSS", "VmHWM"))
        return now, most
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None, None
    return None, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def algorithm_of(request: dict[str, Any]) -> Any:
    from drol.algorithms import find_algorithm

    return find_algorithm(request["algorithm"]).from_dict(request["hyperparameters"])


class Evaluation:
    """Environments of a task on some of the machine's cores, and a policy of each method to play in them."""

    def __init__(self, request: dict[str, Any]):
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, request["cores"])
        from drol.evaluation.episodes import Evaluator
        from drol.types import Spec

        make_environment = environment_maker(request["task"])
        environment = make_environment()
        environment.action_space.seed(0)
        observation, _ = environment.reset(seed=0)  # not observation_space, which knows nothing of stacked frames
        self.spec = Spec(observation.shape, environment.action_space.sample().size)
        self.evaluator = Evaluator(functools.partial(cut_short, make_environment, STEPS))
        self.policies: dict[str, Any] = {}
        self.played: set[int] = set()  # numbers of episodes; another number may need more processes

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Play episodes; what is asked for the first time is played twice, so that nothing is started while timed."""
        from drol.experiments.bench.timers import make_policy

        name, count = request["algorithm"], request["episodes"]
        if name not in self.policies or count not in self.played:
            self.policies.setdefault(name, make_policy(algorithm_of(request), self.spec))
            self.evaluator.run(self.policies[name], count)
            self.played.add(count)
        start = time.perf_counter()
        episodes = self.evaluator.run(self.policies[name], count)
        seconds = time.perf_counter() - start
        failures = [episode.failure for episode in episodes if episode.failure]
        if failures:
            raise RuntimeError(failures[0])
        return {"steps": sum(episode.length for episode in episodes), "seconds": seconds}


def environment_maker(task: str) -> Callable[[], Any]:
    """What makes the environment of a task; an OGBench task needs no dataset for that."""
    from drol.data.images import FRAME_STACK
    from drol.errors import InputError
    from drol.tasks import load_task
    from drol.tasks.ogbench.environment import make_ogbench
    from drol.tasks.ogbench.names import all_names

    name = all_names().get(task)
    if name is not None:
        frames = FRAME_STACK if name.visual else 1
        return functools.partial(make_ogbench, name.environment_id(name.visual), frame_stack=frames)
    make_environment = load_task(task).make_environment
    if make_environment is None:
        raise InputError(f"the task {task} has no environment to step")
    return make_environment


def cut_short(make_environment: Callable[[], Any], steps: int) -> "CutShort":
    return CutShort(make_environment(), steps)


class CutShort:
    """An environment whose episodes end after some steps at the latest."""

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


if __name__ == "__main__":
    main()
