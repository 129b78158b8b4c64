"""Episodes in real environments: each in a process of its own, all of them fed by one batched policy.

An episode depends on the policy, its own seed and nothing else: its latents come from (seed, step), its process seeds
every generator at the start, and the policy always runs on the same number of rows, so the number of processes and the
order in which they answer change nothing.
"""

import functools
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
from jax import Array

from drol.algorithms import find_algorithm
from drol.checkpoints import saved_steps, step_name
from drol.errors import InputError
from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.worker import Broke, Reset, Seen, Step
from drol.policy import Policy
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Episode
from drol.training.reproducibility import available_cores

ROWS = 16  # of every batch of observations, and so the most processes that are of use
GATHERING = 0.05  # seconds without a further answer after which the policy acts on those that are there


@functools.partial(jax.jit, static_argnames="best_of")
def act_rows(policy: Policy, observations: Array, seeds: Array, steps: Array, best_of: int) -> Array:
    """The action of each row, with latents that follow from its episode's seed and its step."""
    base = jax.random.key(0)
    keys = jax.vmap(lambda seed, step: jax.random.fold_in(jax.random.fold_in(base, seed), step))(seeds, steps)
    return policy.act(observations, keys, best_of)


def suitable_processes(episodes: int, cores: int) -> int:
    """At least eight and four for each core, and so many that few are idle when the last episodes are played."""
    counts = range(min(max(8, 4 * cores), ROWS), ROWS + 1)
    return max(counts, key=lambda count: ((episodes % count or count) / count, -count))


class Cancelled(Exception):
    """Somebody asked for the end of an evaluation under way."""


@dataclass
class Running:
    """An episode under way in one process."""

    index: int
    seed: int
    step: int = 0
    total_reward: float = 0.0
    observation: np.ndarray | None = None
    positions: list[np.ndarray] = field(default_factory=list)


class Evaluator:
    """Processes with environments, kept warm from one evaluation to the next."""

    def __init__(
        self,
        make_environment: Callable[[], Any],
        processes: int | None = None,
        keep_positions: bool = False,
        timeout: float = 120.0,
    ):
        self.keep_positions = keep_positions
        self.cancelled = False
        self.cores = available_cores()
        self.chosen = processes is not None
        count = max(1, min(processes or ROWS, ROWS))
        self.processes = [EnvironmentProcess(make_environment, timeout) for _ in range(count)]  # those in use start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        for process in self.processes:
            process.stop()

    def cancel(self) -> None:
        """Have `run`, which may be under way in another thread, raise `Cancelled`."""
        self.cancelled = True

    def run(self, policy: Policy, episodes: int, first_seed: int = 0, best_of: int = 1) -> list[Episode]:
        """Episodes with the seeds `first_seed`, `first_seed + 1`, ...; one that breaks or hangs is marked as failed."""
        finished: dict[int, Episode] = {}
        waiting = iter(range(episodes))
        running: dict[int, Running] = {}
        count = len(self.processes) if self.chosen else suitable_processes(episodes, self.cores)
        for number in range(min(count, episodes)):
            self.begin(number, running, waiting, first_seed)
        while running:
            if self.cancelled:
                raise Cancelled
            answers = self.collect_answers(running)
            for number, answer in answers.items():
                episode = self.absorb(running[number], answer)
                if episode is not None:
                    finished[running.pop(number).index] = episode
                    self.begin(number, running, waiting, first_seed)
            self.send_actions(policy, [number for number in answers if number in running], running, best_of)
        return [finished[index] for index in range(episodes)]

    def begin(self, number: int, running: dict[int, Running], waiting: Iterator[int], first_seed: int) -> None:
        """Give the next episode, if there is one, to a process."""
        index = next(waiting, None)
        if index is None:
            return
        seed = first_seed + index
        running[number] = Running(index, seed)
        self.processes[number].send(Reset(seed))

    def absorb(self, running: Running, answer: Seen | Broke) -> Episode | None:
        """Note what an environment answered; the episode, if that was its end."""
        if isinstance(answer, Seen):
            if running.observation is not None:
                running.step += 1
                running.total_reward += answer.reward
            running.observation = np.asarray(answer.observation, np.float32)
            if self.keep_positions:
                running.positions.append(running.observation[:2])
            if not answer.done:
                return None
        return Episode(
            seed=running.seed,
            total_reward=running.total_reward,
            length=running.step,
            success=isinstance(answer, Seen) and answer.success,
            failure=answer.reason if isinstance(answer, Broke) else None,
            positions=np.asarray(running.positions) if running.positions else None,
        )

    def send_actions(self, policy: Policy, numbers: list[int], running: dict[int, Running], best_of: int) -> None:
        """Run the policy once for all processes that have an observation to act on."""
        ready = [number for number in numbers if running[number].observation is not None]
        if not ready:
            return
        first = running[ready[0]].observation
        assert first is not None
        observations = np.zeros((ROWS, *first.shape), np.float32)
        seeds, steps = np.zeros(ROWS, np.uint32), np.zeros(ROWS, np.uint32)
        for row, number in enumerate(ready):
            observations[row], seeds[row], steps[row] = (
                running[number].observation,
                running[number].seed,
                running[number].step,
            )
        actions = np.asarray(act_rows(policy, observations, seeds, steps, best_of))
        for row, number in enumerate(ready):
            self.processes[number].send(Step(actions[row]))

    def collect_answers(self, running: dict[int, Running]) -> dict[int, Seen | Broke]:
        """Answers of processes that answered, died or ran out of time; none after a second without any, see `cancel`.

        A call of the policy costs the same for one row as for all, so it waits for more answers as long as every core
        has an environment to step and one more to go on with while the policy runs.
        """
        answers: dict[int, Seen | Broke] = {}
        stepping = {self.processes[number].connection.fileno(): number for number in running}
        poll = select.poll()
        for descriptor in stepping:
            poll.register(descriptor, select.POLLIN)
        patience = 1.0
        while stepping and (not answers or len(stepping) > 2 * self.cores):
            ready = [descriptor for descriptor, _ in poll.poll(1000 * patience)]
            now = time.monotonic()
            overdue = [each for each, number in stepping.items() if self.processes[number].deadline < now]
            if not ready and not overdue:
                break
            for descriptor in {*ready, *overdue}:
                poll.unregister(descriptor)
                process, number = self.processes[stepping[descriptor]], stepping.pop(descriptor)
                answers[number] = process.read() if descriptor in ready else process.receive()
            patience = GATHERING
        return answers


def evaluate_run(
    directory: RunDirectory,
    episodes: int,
    best_of: int = 1,
    step: int | None = None,
    first_seed: int = 0,
    processes: int | None = None,
) -> list[dict[str, Any]]:
    """Evaluate a saved policy of every seed of a run, the last one unless a step is given, and record it."""
    run = directory.read_config()["run"]
    if episodes < 1 or best_of < 1:
        raise InputError(f"episodes is {episodes} and best_of is {best_of}; both must be at least 1")
    name = run["algorithm"]["name"]
    if best_of > 1 and not find_algorithm(name).draws_actions:
        raise InputError(
            f"best_of is {best_of}, but {name} acts with its mean, so there is nothing to choose; it must be 1"
        )
    saved = saved_steps(directory.policies)
    if not saved:
        raise InputError(f"the run in {directory.path} has no policy yet; train it first")
    if step is not None and step not in saved:
        raise InputError(f"no policy of step {step} in {directory.path}; it has {', '.join(map(str, saved))}")
    step = saved[-1] if step is None else step
    task = load_task(run["task"], Path(run["dataset"]) if run["dataset"] else None)
    if task.make_environment is None:
        raise InputError(f"the task {task.name} has no environment to evaluate in; --offline judges by the data")
    rows = []
    with Evaluator(task.make_environment, processes) as evaluator:
        for seed in run["seeds"]:
            policy = Policy.load(directory.policies / step_name(step), seed)
            played = evaluator.run(policy, episodes, first_seed, best_of)
            row = {"step": step, "seed": seed, "best_of": best_of, "score": task.score(played)}
            rows.append(row | {"episodes": [episode.to_dict() for episode in played]})
            directory.log_extra_evaluation(rows[-1])
    return rows
