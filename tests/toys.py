"""Small states, batches, datasets and tasks for the tests, made with NumPy so that nothing is compiled for them."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from fake_environments import Walk

from drol.algorithms.drol import DROL, Draws, DROLState
from drol.algorithms.parts import trainable
from drol.data.dataset import Dataset
from drol.runs.config import RunConfig
from drol.tasks.base import Maze, Task, success_rate
from drol.types import Spec, Transition

TESTS = Path(__file__).parent
OBSERVATION_SIZE, ACTION_SIZE = 3, 2
SPEC = Spec((OBSERVATION_SIZE,), ACTION_SIZE)
TINY = DROL(num_candidates=4, hidden_sizes=(16, 16), batch_size=32)


def random_tree(like, seed: int):
    """Arrays of the shapes of `like`, of a size that keeps activations near one."""
    generator = np.random.default_rng(seed)

    def draw(leaf):
        scale = 1.5 / np.sqrt(leaf.shape[-2]) if leaf.ndim > 1 else 0.3
        return jnp.asarray(generator.normal(scale=scale, size=leaf.shape), jnp.float32)

    return jax.tree.map(draw, like)


def random_state(algorithm: DROL, seed: int = 0, spec: Spec = SPEC) -> DROLState:
    """A state before its first update, in which no two networks are equal."""
    like = jax.eval_shape(lambda key: algorithm.init(key, spec), jax.random.key(0))
    actor = random_tree(like.actor.network, seed)
    critic = random_tree(like.critic.network, seed + 1)
    return DROLState(trainable(actor), trainable(critic), random_tree(like.target_critic, seed + 2))


def random_batch(rows: int = 32, seed: int = 0) -> Transition:
    """Random transitions, some of which end the task."""
    generator = np.random.default_rng(seed)
    batch = Transition(
        observation=generator.normal(size=(rows, OBSERVATION_SIZE)),
        action=generator.uniform(-0.99, 0.99, (rows, ACTION_SIZE)),
        reward=generator.normal(size=rows),
        continues=generator.integers(0, 2, rows),
        next_observation=generator.normal(size=(rows, OBSERVATION_SIZE)),
        next_action=generator.uniform(-0.99, 0.99, (rows, ACTION_SIZE)),
        next_action_known=np.ones(rows),
    )
    return jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), batch)


def random_draws(count: int, rows: int = 32, seed: int = 1) -> Draws:
    generator = np.random.default_rng(seed)
    latent, next_latent = (generator.uniform(-1, 1, (*shape, ACTION_SIZE)) for shape in ((rows, count), (rows,)))
    return Draws(jnp.asarray(latent, jnp.float32), jnp.asarray(next_latent, jnp.float32))


def random_rows(lengths, seed: int = 0, observation_size: int = OBSERVATION_SIZE, action_size: int = ACTION_SIZE):
    """Trajectories of these many transitions laid end to end, as `Dataset.from_rows` takes them."""
    generator = np.random.default_rng(seed)
    rows = sum(lengths) + len(lengths)
    return {
        "observation": generator.normal(size=(rows, observation_size)).astype(np.float32),
        "action": generator.uniform(-0.99, 0.99, (rows, action_size)).astype(np.float32),
        "reward": generator.normal(size=rows).astype(np.float32),
        "continues": generator.integers(0, 2, rows).astype(np.float32),
        "last": np.isin(np.arange(rows), np.cumsum([length + 1 for length in lengths]) - 1),
    }


def tiny_task(environment: str | None = "healthy", **changes) -> Task:
    """200 random transitions and, unless it is None, an environment of `fake_environments`."""
    maze = Maze(np.zeros((3, 3), bool), 1.0, (1.0, 1.0), (0.0, 0.0), (1.0, 1.0), 0.5)
    values = {
        "name": "toy",
        "train": Dataset.from_rows(**random_rows([50, 100, 50])),
        "validation": Dataset.from_rows(**random_rows([30], seed=1)),
        "make_environment": functools.partial(Walk, environment) if environment else None,
        "score": success_rate,
        "score_name": "success (%)",
        "maze": maze,
    }
    return Task(**(values | changes))


def tiny_config(**changes) -> RunConfig:
    values = {
        "algorithm": TINY,
        "task": "toy",
        "seeds": (0, 7),
        "steps": 12,
        "log_interval": 4,
        "evaluation_interval": 6,
        "evaluation_episodes": 3,
        "checkpoint_interval": 3,
    }
    return RunConfig(**(values | changes))
