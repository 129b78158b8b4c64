"""Play episodes in environments in separate processes, with one batched policy for all of them.

An episode depends only on the policy and its seed. Its latents depend on (seed, step), every generator is seeded at its
start, and the policy always runs on the same number of rows. So the number of processes and the order of their answers
do not change the results.
"""

import functools
import math
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import jax
import numpy as np
from jax import Array

from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.worker import Batch, BatchSeen, Broke
from drol.machine import available_cores
from drol.policy import Policy
from drol.tasks.base import Episode

ROWS = 16  # rows of every batch of observations, and the maximum number of processes
GATHERING_SECONDS = 0.05  # after this time without a new answer, the policy acts on the answers so far


@functools.partial(jax.jit, static_argnames="best_of")
def draw_rows(policy: Policy, observations: Array, seeds: Array, steps: Array, best_of: int | None) -> Array:
    """Draw the action of each row; the random numbers depend on the seed and the step of its episode."""
    base = jax.random.key(0)
    keys = jax.vmap(lambda seed, step: jax.random.fold_in(jax.random.fold_in(base, seed), step))(seeds, steps)
    return policy.draw_each(observations, keys, best_of)


@functools.lru_cache(maxsize=16)
def draw_from_leaves(structure: Any, best_of: int | None) -> Callable[..., Array]:
    """Return `draw_rows` for the leaves of a policy: flattening a policy at each call costs as much as a network."""
    return jax.jit(lambda leaves, *rows: draw_rows(jax.tree.unflatten(structure, leaves), *rows, best_of))


def suitable_processes(episodes: int, cores: int) -> int:
    """Return the process count: at least 8, at least 4 per core, at most `ROWS`, with few idle in the last round."""
    counts = range(min(max(8, 4 * cores), ROWS), ROWS + 1)
    return max(counts, key=lambda count: ((episodes % count or count) / count, -count))


def divide(environments: int, processes: int) -> list[int]:
    """Return the number of environments of each process."""
    processes = min(processes, environments)
    return [environments // processes + (number < environments % processes) for number in range(processes)]


class EnvironmentFailed(Exception):
    """The environment fails in every attempt."""


class Cancelled(Exception):
    """`Evaluator.cancel` ended the evaluation."""


@dataclass
class Running:
    """An unfinished episode."""

    index: int
    seed: int
    step: int = 0
    total_reward: float = 0.0
    observation: np.ndarray | None = None
    positions: list[np.ndarray] = field(default_factory=list)

    def end(self, success: bool, failure: str | None = None) -> Episode:
        return Episode(
            seed=self.seed,
            total_reward=self.total_reward,
            length=self.step,
            success=success,
            failure=failure,
            positions=np.asarray(self.positions) if self.positions else None,
        )


@dataclass(eq=False)
class Worker:
    """A process, and the episodes that its environments play."""

    process: EnvironmentProcess
    environments: int
    running: dict[int, Running] = field(default_factory=dict)  # by the number of the environment
    isolates: bool = False  # whether it plays one episode alone, to find the one that ends its process


class Evaluator:
    """Processes with environments, which are reused for all evaluations.

    If a process ends or hangs, each of its unfinished episodes is repeated alone in a process. So only the episode that
    is at fault fails.

    Args:
        make_environment: Makes an environment; called in each process.
        processes: Concurrent environments; chosen for the machine if None.
        keep_positions: Whether episodes keep the first two numbers of each observation.
        timeout: Maximum seconds for an answer of an environment.
        modules: Modules that are imported once for all processes.
        share: Whether one process for each core has all environments (`Task.shares_process`); otherwise
            each environment has a process.
    """

    def __init__(
        self,
        make_environment: Callable[[], Any],
        processes: int | None = None,
        keep_positions: bool = False,
        timeout: float = 120.0,
        modules: Sequence[str] = (),
        share: bool = False,
    ):
        self.keep_positions = keep_positions
        self.cancelled = False
        self.cores = available_cores()
        self.count, self.share = processes, share
        count = max(1, min(processes or ROWS, ROWS))
        # A process starts when it is first used.
        self.processes = [EnvironmentProcess(make_environment, timeout, modules) for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        for process in self.processes:
            process.stop()

    def cancel(self) -> None:
        """Make `run`, possibly in another thread, raise `Cancelled`."""
        self.cancelled = True

    def assign(self, episodes: int) -> list[Worker]:
        """Return the processes for a number of episodes, with their numbers of environments."""
        if self.count:
            count = min(len(self.processes), episodes)
        elif self.share:
            rounds = math.ceil(episodes / ROWS)
            even = self.cores * math.ceil(episodes / rounds / self.cores)  # equally many episodes for each core
            count = min(even, ROWS, episodes)
        else:
            count = min(suitable_processes(episodes, self.cores), episodes)
        sizes = divide(count, self.cores if self.share else count)
        return [Worker(*each) for each in zip(self.processes, sizes, strict=False)]

    def run(
        self,
        policy: Policy,
        episodes: int,
        first_seed: int = 0,
        best_of: int | None = None,
        on_episode: Callable[[int], None] | None = None,
    ) -> list[Episode]:
        """Play episodes with the seeds `first_seed`, `first_seed + 1`, ...; errors and timeouts are failed episodes.

        `on_episode` is called with the number of finished episodes after each of them.
        """
        leaves, structure = jax.tree.flatten(policy)
        draw = functools.partial(draw_from_leaves(structure, best_of), leaves)
        finished: dict[int, Episode] = {}
        waiting, suspects = deque(range(episodes)), deque[int]()
        workers = self.assign(episodes)
        for worker in workers:
            self.send(worker, self.begin(worker, waiting, suspects, first_seed), {})
        while any(worker.running for worker in workers):
            if self.cancelled:
                raise Cancelled
            answers = self.collect_answers([worker for worker in workers if worker.running])
            before = len(finished)
            for worker, answer in answers.items():
                if isinstance(answer, BatchSeen):
                    finished |= self.absorb(worker, answer)
                elif len(worker.running) > 1:
                    suspects.extend(running.index for running in worker.running.values())
                    worker.running.clear()
                else:
                    (running,) = worker.running.values()
                    finished[running.index] = running.end(success=False, failure=answer.reason)
                    worker.running.clear()
            for count in range(before + 1, len(finished) + 1):
                if on_episode:
                    on_episode(count)
            idle = [worker for worker in workers if not worker.running and worker not in answers]
            seeds = {worker: self.begin(worker, waiting, suspects, first_seed) for worker in (*answers, *idle)}
            actions = self.draw_actions(draw, [worker.running for worker in answers])
            for worker, started in seeds.items():
                self.send(worker, started, actions)
        return [finished[index] for index in range(episodes)]

    def begin(self, worker: Worker, waiting: deque[int], suspects: deque[int], first_seed: int) -> dict[int, int]:
        """Start the next episodes in a process; return their seeds by the number of their environment."""
        if not worker.running:
            worker.isolates = bool(suspects)
        elif worker.isolates:
            return {}
        source, most = (suspects, 1) if worker.isolates else (waiting, worker.environments)
        seeds = {}
        for number in range(most):
            if number not in worker.running and source:
                index = source.popleft()
                worker.running[number] = Running(index, first_seed + index)
                seeds[number] = first_seed + index
        return seeds

    def absorb(self, worker: Worker, seen: BatchSeen) -> dict[int, Episode]:
        """Add the answers of a process to its episodes; return the episodes that have ended, by their index."""
        ended = {}
        observations = np.asarray(seen.observations, np.float32)
        results = zip(seen.numbers, observations, seen.rewards, seen.dones, seen.successes, strict=True)
        for number, observation, reward, done, success in results:
            running = worker.running[number]
            if running.observation is not None:
                running.step += 1
                running.total_reward += reward
            running.observation = observation
            if self.keep_positions:
                running.positions.append(observation[:2])
            if done:
                ended[running.index] = worker.running.pop(number).end(success)
        for number, reason in seen.broken.items():
            running = worker.running.pop(number)
            ended[running.index] = running.end(success=False, failure=reason)
        return ended

    def draw_actions(self, draw: Callable[..., Array], episodes: list[dict[int, Running]]) -> dict[int, np.ndarray]:
        """Run the policy once; return the action of each episode that has an observation, by the episode's index."""
        ready = [running for each in episodes for running in each.values() if running.observation is not None]
        if not ready:
            return {}
        assert ready[0].observation is not None
        observations = np.zeros((ROWS, *ready[0].observation.shape), np.float32)
        seeds, steps = np.zeros(ROWS, np.uint32), np.zeros(ROWS, np.uint32)
        for row, running in enumerate(ready):
            observations[row], seeds[row], steps[row] = running.observation, running.seed, running.step
        actions = np.asarray(draw(observations, seeds, steps))
        return {running.index: actions[row] for row, running in enumerate(ready)}

    def send(self, worker: Worker, seeds: dict[int, int], actions: dict[int, np.ndarray]) -> None:
        """Send the seeds of new episodes and the actions of the others to a process."""
        numbers = [number for number in worker.running if number not in seeds]
        if seeds or numbers:
            rows = np.array([actions[worker.running[number].index] for number in numbers])
            worker.process.send(Batch(seeds, numbers, rows))

    def collect_answers(self, workers: list[Worker]) -> dict[Worker, BatchSeen | Broke]:
        """Return the answers of the processes that answered, died or timed out.

        A call of the policy costs the same for one row as for all rows. So wait for more answers as long as every core
        still has two environments to step, one of them while the policy runs. After a second without any answer,
        return no answers, so that `run` can check for a cancellation.
        """
        answers: dict[Worker, BatchSeen | Broke] = {}
        stepping = {worker.process.connection.fileno(): worker for worker in workers}
        left = sum(len(worker.running) for worker in workers)
        poll = select.poll()
        for descriptor in stepping:
            poll.register(descriptor, select.POLLIN)
        patience = 1.0
        while stepping and (not answers or left > 2 * self.cores):
            ready = [descriptor for descriptor, _ in poll.poll(1000 * patience)]
            now = time.monotonic()
            overdue = [each for each, worker in stepping.items() if worker.process.deadline < now]
            if not ready and not overdue:
                break
            for descriptor in {*ready, *overdue}:
                poll.unregister(descriptor)
                worker = stepping.pop(descriptor)
                left -= len(worker.running)
                answers[worker] = worker.process.read() if descriptor in ready else worker.process.receive()
            patience = GATHERING_SECONDS
        return answers
