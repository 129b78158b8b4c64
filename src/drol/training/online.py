"""Fine-tuning in the environment: one step of every seed, then one update on offline data and experience.

Every seed has its own environment and experience. The state of a simulator is not saved: a resumed run replays the
recorded actions of the unfinished episode from the episode's seed, which leads to the same state.
"""

import logging
from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms.base import Algorithm
from drol.compiling import fast_jit
from drol.data.actions import ACTION_LIMIT
from drol.data.dataset import Dataset
from drol.data.replay import Experience, Replay
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.episodes import EnvironmentFailed
from drol.evaluation.worker import Broke, Reset, Seen, Step
from drol.runs.config import RunConfig
from drol.runs.records import OnlineEpisodeRow
from drol.tasks.base import Task
from drol.training.compiled import EXPLORATION, over_seeds
from drol.transition import Metrics

logger = logging.getLogger(__name__)

PATIENCE = 10  # consecutive failures to start an environment before the run fails


class Arrival(eqx.Module):
    """The outcome of one step of every seed, each field with the seed as its first axis."""

    action: Array | np.ndarray
    reward: Array | np.ndarray
    continues: Array | np.ndarray
    next_observation: Array | np.ndarray
    stepped: Array | np.ndarray  # bool; False if the environment failed
    begins: Array | np.ndarray  # bool; True if an episode starts with `first_observation`
    first_observation: Array | np.ndarray


@fast_jit()
def explore_seeds(algorithm: Algorithm, states: Any, experiences: Experience, keys: Array, step: Array | int) -> Array:
    """Return the action of every seed at its current observation."""

    def explore(state: Any, experience: Experience, key: Array) -> Array:
        own_key = jax.random.fold_in(jax.random.fold_in(key, step), EXPLORATION)
        return algorithm.explore(state.policy, experience.present, own_key)

    return over_seeds(explore, states, experiences, keys)


@fast_jit(donate_argnames=("experiences",))
def absorb(experiences: Experience, arrival: Arrival) -> Experience:
    """Add one step to the experience of every seed."""

    def absorb_one(experience: Experience, arrival: Arrival) -> Experience:
        step = arrival.action, arrival.reward, arrival.continues, arrival.next_observation
        return experience.add(*step, arrival.stepped).begin(arrival.first_observation, arrival.begins)

    return over_seeds(absorb_one, experiences, arrival)


@fast_jit(static_argnames="balanced", donate_argnames=("states", "totals"))
def online_update(
    algorithm: Algorithm,
    states: Any,
    totals: Metrics,
    dataset: Dataset,
    experiences: Experience,
    keys: Array,
    step: Array | int,
    balanced: bool,
) -> tuple[Any, Metrics]:
    """Do one update of every seed and add its metrics to the totals; it uses the same keys as `train_chunk`."""

    def update(state: Any, total: Metrics, experience: Experience, key: Array) -> tuple[Any, Metrics]:
        batch_key, update_key = jax.random.split(jax.random.fold_in(key, step))
        batch = Replay(dataset, experience, balanced).sample(batch_key, algorithm.batch_size)
        state, metrics = algorithm.update(state, batch, update_key)
        return state, jax.tree.map(jnp.add, total, metrics)

    return over_seeds(update, states, totals, experiences, keys)


class Interaction:
    """The environments of all seeds, their unfinished episodes and their experience."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        dataset: Dataset,
        standardisation: Standardisation,
        record: Callable[[OnlineEpisodeRow], None],
        timeout: float = 120.0,
    ):
        assert task.make_environment is not None
        self.seeds, self.reward_offset = config.seeds, task.reward_offset
        self.standardisation = standardisation if config.standardise_observations else None
        self.record = record  # called with every episode that ended
        self.processes = [
            EnvironmentProcess(task.make_environment, timeout, task.environment_modules) for _ in self.seeds
        ]
        self.capacity = min(config.replay_size or config.online_steps, config.online_steps)
        empty = Experience.empty(self.capacity, dataset)
        self.experiences: Experience = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(self.seeds)), empty)
        self.episodes = np.zeros(len(self.seeds), np.int64)  # number of episodes that each seed started
        self.started = False
        self.returns = np.zeros(len(self.seeds))  # rewards so far of the unfinished episodes
        self.lengths = np.zeros(len(self.seeds), np.int64)

    def check_replay_size(self, online_steps: int) -> None:
        """Raise `InputError` before the first update if the replay cannot hold an episode of full length."""
        if self.capacity < online_steps:
            limit = self.processes[0].episode_limit()
            self.processes[0].stop()
            if limit is not None and self.capacity < limit:
                raise InputError(
                    f"replay_size is {self.capacity}; it must be at least {limit}, the steps of the longest episode, "
                    "or 0 to keep all"
                )

    def step(self, algorithm: Algorithm, states: Any, keys: Array, step: int) -> None:
        """Take one step in every environment, and start a new episode where one ended."""
        actions = np.asarray(explore_seeds(algorithm, states, self.experiences, keys, step))
        actions = np.clip(actions, -ACTION_LIMIT, ACTION_LIMIT)  # as recorded, so that a replay is exact
        for process, action in zip(self.processes, actions, strict=True):
            process.send(Step(action))
        answers = [process.receive() for process in self.processes]
        stepped = np.asarray([isinstance(answer, Seen) for answer in answers])
        seen = [answer if isinstance(answer, Seen) else None for answer in answers]
        nothing = np.zeros(self.experiences.observation.shape[2:], self.experiences.observation.dtype)
        observations = np.stack([self.observe(each.observation) if each else nothing for each in seen])
        rewards = np.asarray([each.reward if each else 0.0 for each in seen])
        self.returns += rewards
        self.lengths += stepped
        if self.lengths.max() > self.capacity:  # resuming could not replay the overwritten first steps
            raise InputError(
                f"replay_size is {self.capacity}; it must be at least the length of the longest episode. Start another "
                "run with a larger one; --from this run's folder keeps its networks"
            )
        begins = np.asarray([each is None or each.done for each in seen])
        for index in np.flatnonzero(begins):
            self.conclude(int(index), step, answers[index])
        first_observations = self.begin(np.flatnonzero(begins), observations)
        continues = np.asarray([each is not None and not each.terminated for each in seen], np.float32)
        rewards = (rewards + self.reward_offset).astype(np.float32)
        arrival = Arrival(actions, rewards, continues, observations, stepped, begins, first_observations)
        self.experiences = absorb(self.experiences, arrival)

    def begin(self, indices: Any, like: np.ndarray) -> np.ndarray:
        """Start the next episode of some seeds; return the first observations [seed, ...], arbitrary for the others."""
        observations = like.copy()
        waiting = list(indices)
        for _ in range(PATIENCE):
            for index in waiting:
                self.processes[index].send(Reset(self.episode_seed(index)))
                self.episodes[index] += 1
            answers = {index: self.processes[index].receive() for index in waiting}
            waiting = [index for index, answer in answers.items() if isinstance(answer, Broke)]
            for index in answers.keys() - set(waiting):
                observations[index] = self.observe(answers[index].observation)
                self.returns[index], self.lengths[index] = 0.0, 0
            if not waiting:
                return observations
        raise EnvironmentFailed(
            f"the environment of seed {self.seeds[waiting[0]]} broke {PATIENCE} times when it was started: "
            f"{answers[waiting[0]].reason}"
        )

    def conclude(self, index: int, step: int, answer: Seen | Broke) -> None:
        """Record an episode that ended or failed."""
        success = isinstance(answer, Seen) and answer.success
        failure = answer.reason if isinstance(answer, Broke) else None
        total, length = float(self.returns[index]), int(self.lengths[index])
        self.record(OnlineEpisodeRow(step, self.seeds[index], total, length, success, failure))

    def start(self) -> None:
        """Start the first episodes, or replay the unfinished episodes of restored experience."""
        self.started = True
        heads = np.asarray(self.experiences.head)
        present = np.asarray(self.experiences.observation[np.arange(len(heads)), heads])
        fresh = [index for index in range(len(self.seeds)) if self.episodes[index] == 0]
        begins = np.isin(np.arange(len(self.seeds)), fresh)
        observations = self.begin(fresh, present)
        for index in np.flatnonzero(~begins):
            reached = self.replay(int(index), int(heads[index]))
            if reached is None or not np.array_equal(reached, present[index]):
                logger.warning(
                    f"the environment of seed {self.seeds[index]} did not replay its episode exactly; a new one begins"
                )
                observations[index] = self.begin([index], observations)[index]
                begins[index] = True
        zeros = np.zeros(len(self.seeds), np.float32)
        actions = np.zeros((len(self.seeds), self.experiences.action.shape[-1]), np.float32)
        arrival = Arrival(actions, zeros, zeros, observations, np.zeros(len(self.seeds), bool), begins, observations)
        self.experiences = absorb(self.experiences, arrival)

    def replay(self, index: int, head: int) -> np.ndarray | None:
        """Replay the unfinished episode; return its current observation, None if the environment failed."""
        last = np.asarray(self.experiences.last[index])
        rows = np.roll(np.arange(len(last)), -head - 1)[:-1]  # all rows except the current one, oldest first
        ends = np.flatnonzero(last[rows])
        first = ends[-1] + 1 if len(ends) else len(rows) - head  # if no episode ended, this one began at row 0
        actions = np.asarray(self.experiences.action[index])[rows[first:]]
        process = self.processes[index]
        process.send(Reset(self.episode_seed(index, self.episodes[index] - 1)))
        answer = process.receive()
        self.returns[index], self.lengths[index] = 0.0, 0
        for action in actions:
            if isinstance(answer, Broke):
                return None
            process.send(Step(action))
            answer = process.receive()
            self.returns[index] += answer.reward if isinstance(answer, Seen) else 0.0
            self.lengths[index] += 1
        return self.observe(answer.observation) if isinstance(answer, Seen) else None

    def episode_seed(self, index: int, episode: int | None = None) -> int:
        """Return the seed of an episode, at least 2^31 and so different from the small seeds of evaluation episodes."""
        episode = int(self.episodes[index]) if episode is None else int(episode)
        return int(np.random.SeedSequence((self.seeds[index], episode, 1)).generate_state(1)[0] | 2**31)

    def observe(self, observation: np.ndarray) -> np.ndarray:
        """Return an observation in the form of the dataset: its type, and standardised if the run asks for it."""
        observation = np.asarray(observation, self.experiences.observation.dtype)
        return np.asarray(self.standardisation(jnp.asarray(observation))) if self.standardisation else observation

    def to_tree(self) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the arrays for a checkpoint (experience, numbers of episodes), and the number of filled rows."""
        transitions, rows = int(self.experiences.size.max()), int(self.experiences.head.max()) + 1
        if transitions > self.capacity:  # the ring buffer has wrapped around
            transitions, rows = self.capacity, self.experiences.last.shape[1]
        filled = {"rows": rows, "transitions": transitions}
        return {"experiences": trim(self.experiences, **filled), "episodes": self.episodes.copy()}, filled

    def tree_like(self, rows: int, transitions: int) -> dict[str, Any]:
        """Return the shapes of the arrays of `to_tree` for these numbers of filled rows."""
        trimmed = jax.eval_shape(lambda experiences: trim(experiences, rows, transitions), self.experiences)
        return {"experiences": trimmed, "episodes": self.episodes}

    def restore(self, tree: dict[str, Any]) -> None:
        def fill(empty: Array, saved: Array) -> Array:
            return empty.at[:, : saved.shape[1]].set(saved) if empty.ndim > 1 else saved

        self.experiences = jax.tree.map(fill, self.experiences, tree["experiences"])
        self.episodes = np.asarray(tree["episodes"], np.int64).copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.stop()


def trim(experiences: Experience, rows: int, transitions: int) -> Experience:
    """Return the first rows and transitions of every seed."""
    trimmed = jax.tree.map(lambda leaf: leaf[:, :rows] if leaf.ndim > 1 else leaf, experiences)
    return eqx.tree_at(lambda each: each.start, trimmed, experiences.start[:, :transitions])
