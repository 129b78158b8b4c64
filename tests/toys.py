"""Small states, batches, datasets and tasks for the tests, made with NumPy so that nothing is compiled for them.

`train_states` and `draw_actions` compile: they are for tests that train until an answer is found.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from fake_environments import Walk

from drol.algorithms.base import Algorithm
from drol.algorithms.drol import DROL
from drol.algorithms.drol_equation import DROLEquation
from drol.algorithms.parts import trainable
from drol.algorithms.routing import Draws
from drol.checkpoints import step_name
from drol.compiling import compiler_options, fast_jit
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.networks.actors import LatentActor
from drol.policy import save_policies
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.tasks.base import Maze, Task, success_rate
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals
from drol.transition import Spec, Transition

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


def random_state(algorithm: DROL | DROLEquation, seed: int = 0, spec: Spec = SPEC):
    """A state before its first update, in which no two networks are equal."""
    like = jax.eval_shape(lambda key: algorithm.init(key, spec), jax.random.key(0))
    actor = random_tree(like.actor.network, seed)
    critic = random_tree(like.critic.network, seed + 1)
    return type(like)(trainable(actor), trainable(critic), random_tree(like.target_critic, seed + 2))


def random_batch(rows: int = 32, seed: int = 0) -> Transition:
    """Return random transitions; some of them end the task."""
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


class Echo:
    """An actor whose candidates are its latents."""

    def candidates(self, observation, latent):
        return latent


def with_outputs_scaled(actor: LatentActor, factor: float) -> LatentActor:
    """The actor with all of its actions multiplied by a factor."""
    last = jax.tree.map(lambda leaf: factor * leaf, actor.network.layers[-1])
    return eqx.tree_at(lambda tree: tree.network.layers[-1], actor, last)


def assert_close(found, expected, tolerance=1e-6):
    """That all arrays of two trees agree to a share of the largest entry."""
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))


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


def train_states(algorithm: Algorithm, dataset: Dataset, seeds: tuple[int, ...], updates: int) -> Any:
    """The states of all seeds after these updates, the last quarter of them with a tenth of the learning rate.

    Without the slow end, Adam still jumps about the answer, which hides by how much a method misses it.
    """
    keys = seed_keys(seeds)
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    slow = dataclasses.replace(algorithm, learning_rate=algorithm.to_dict()["learning_rate"] / 10)
    fast_updates = updates * 3 // 4
    states, totals = optimised_chunk()(algorithm, states, totals, dataset, keys, 1, fast_updates)
    return optimised_chunk()(slow, states, totals, dataset, keys, fast_updates + 1, updates)[0]


@functools.cache
def optimised_chunk() -> Any:
    """Return `train_chunk`, optimised more than other programs of the tests: 2,000 updates take a sixth of the time."""
    options = compiler_options() | {"xla_backend_optimization_level": "1"}
    return jax.jit(train_chunk.__wrapped__, donate_argnames=("states", "totals"), compiler_options=options)


@fast_jit(static_argnames="count")
def draw_actions(algorithm: Algorithm, policies: Any, observations: jax.Array, count: int) -> jax.Array:
    """Actions [seed, observation, count, action] of the policies of all seeds."""
    keys = jax.random.split(jax.random.key(0), count)

    def draw(policy: Any, observation: jax.Array) -> jax.Array:
        return jax.vmap(lambda key: algorithm.act(policy, observation, key))(keys)

    return jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(policies, observations)


def saved_run(path: Path, config: RunConfig, steps: tuple[int, ...]) -> RunDirectory:
    """A run folder with untrained policies of all its seeds at these steps, and nothing else."""
    directory = RunDirectory(path)
    path.mkdir(parents=True, exist_ok=True)
    directory.write_config({"run": config.to_dict(), "dataset_fingerprint": "", "circumstances": {}})
    keys = jax.random.split(jax.random.key(0), len(config.seeds))
    stacked = jax.vmap(lambda key: config.algorithm.init(key, SPEC).policy)(keys)
    for step in steps:
        tree = (stacked, Standardisation.identity(SPEC))
        save_policies(directory.policies / step_name(step), config.algorithm, tree, SPEC, config.seeds)
    return directory
