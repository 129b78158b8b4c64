"""Play episodes in environments in separate processes, with one batched policy for all of them.

An episode depends only on the policy and its seed. Its latents depend on (seed, step), its process seeds every
generator at the start, and the policy always runs on the same number of rows. So the number of processes and the order
of their answers do not change the results.
"""

import functools
import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import jax
import numpy as np
from jax import Array

from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.worker import Broke, Reset, Seen, Step
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


def suitable_processes(episodes: int, cores: int) -> int:
    """Return the number of processes: at least 8, at least 4 per core, at most `ROWS`, few idle in the last round."""
    counts = range(min(max(8, 4 * cores), ROWS), ROWS + 1)
    return max(counts, key=lambda count: ((episodes % count or count) / count, -count))


class EnvironmentFailed(Exception):
    """The environment fails in every attempt."""


class Cancelled(Exception):
    """`Evaluator.cancel` ended the evaluation."""


@dataclass
class Running:
    """An unfinished episode in one process."""

    index: int
    seed: int
    step: int = 0
    total_reward: float = 0.0
    observation: np.ndarray | None = None
    positions: list[np.ndarray] = field(default_factory=list)


class Evaluator:
    """Processes with environments, which are reused for all evaluations.

    Args:
        make_environment: Makes an environment; called in each process.
        processes: Concurrent environments; chosen for the machine if None.
        keep_positions: Whether episodes keep the first two numbers of each observation.
        timeout: Maximum seconds for an answer of an environment.
        modules: Modules that are imported once for all processes.
    """

    def __init__(
        self,
        make_environment: Callable[[], Any],
        processes: int | None = None,
        keep_positions: bool = False,
        timeout: float = 120.0,
        modules: Sequence[str] = (),
    ):
        self.keep_positions = keep_positions
        self.cancelled = False
        self.cores = available_cores()
        self.chosen = processes is not None
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
                    if on_episode:
                        on_episode(len(finished))
                    self.begin(number, running, waiting, first_seed)
            self.send_actions(policy, [number for number in answers if number in running], running, best_of)
        return [finished[index] for index in range(episodes)]

    def begin(self, number: int, running: dict[int, Running], waiting: Iterator[int], first_seed: int) -> None:
        """Start the next episode, if there is one, in a process."""
        index = next(waiting, None)
        if index is None:
            return
        seed = first_seed + index
        running[number] = Running(index, seed)
        self.processes[number].send(Reset(seed))

    def absorb(self, running: Running, answer: Seen | Broke) -> Episode | None:
        """Add the answer of an environment to its episode; return the episode if it has ended."""
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

    def send_actions(
        self, policy: Policy, numbers: list[int], running: dict[int, Running], best_of: int | None
    ) -> None:
        """Run the policy once and send an action to each process with an observation."""
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
        actions = np.asarray(draw_rows(policy, observations, seeds, steps, best_of))
        for row, number in enumerate(ready):
            self.processes[number].send(Step(actions[row]))

    def collect_answers(self, running: dict[int, Running]) -> dict[int, Seen | Broke]:
        """Return the answers of the processes that answered, died or timed out.

        A call of the policy costs the same for one row as for all rows. So wait for more answers as long as every core
        still has two environments to step, one of them while the policy runs. After a second without any answer,
        return no answers, so that `run` can check for a cancellation.
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
            patience = GATHERING_SECONDS
        return answers
