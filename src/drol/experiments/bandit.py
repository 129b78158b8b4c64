"""One pull of a bandit whose best action is off-centre inside the data, and what BC, FQL and DROL make of it.

    data    a uniform in two discs, r = 1 - 1.5 |a - a*|^2 in the better one, 0.7 - |a - centre|^2 in the other, + noise
    truth   the same inside the discs, 0 outside: an action that nobody took is worth nothing
    loss    weight |pull|^2 / d_a - Q / E|Q| for FQL (to its teacher's action) and DROL (data to nearest candidate)

All methods see the same data and learn their own critic from it. The weights of FQL and DROL are swept over one grid,
and the best of each is drawn. `python -m drol.experiments.bandit --out docs/images/bandit.png` makes the figure.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms import ALGORITHMS, Algorithm
from drol.data.dataset import Dataset
from drol.experiments.figures import MUTED, REACHED, SERIES
from drol.training.compiled import fast_jit, init_seeds, seed_keys, train_chunk, zero_totals

BETTER, OTHER, RADIUS = np.asarray([0.5, 0.0]), np.asarray([-0.5, 0.0]), 0.4
OPTIMUM = BETTER + 0.25 * np.asarray([0.6, 0.8])  # five eighths of the way from the centre to the edge
WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # the grid of both papers for a normalised Q
SEEDS, UPDATES = (0, 1, 2), 6_000
SMALL = {"hidden_sizes": (64, 64), "batch_size": 128, "learning_rate": 1e-3}
COLOURS = {"bc": MUTED, "fql": SERIES[1], "drol": REACHED}


def inside(actions: np.ndarray) -> np.ndarray:
    """Whether actions [..., 2] lie in the support of the data."""
    return np.minimum(*(np.linalg.norm(actions - centre, axis=-1) for centre in (BETTER, OTHER))) <= RADIUS


def true_reward(actions: np.ndarray) -> np.ndarray:
    """`1 - 1.5 |a - a*|^2` in the better disc, `0.7 - |a - centre|^2` in the other, 0 outside both."""
    to_better, to_other, to_optimum = (np.square(actions - x).sum(-1) for x in (BETTER, OTHER, OPTIMUM))
    return inside(actions) * np.where(to_better < to_other, 1 - 1.5 * to_optimum, 0.7 - to_other)


def bandit_data(count: int = 2_000, noise: float = 0.1, seed: int = 0) -> Dataset:
    """Episodes of one pull, as many in one disc as in the other."""
    generator = np.random.default_rng(seed)
    angle, radius = 2 * np.pi * generator.uniform(size=count), RADIUS * np.sqrt(generator.uniform(size=count))
    centre = np.where(np.arange(count)[:, None] % 2, OTHER, BETTER)
    action = centre + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    reward = true_reward(action) + noise * generator.normal(size=count)
    twice = np.repeat(np.arange(count), 2)  # the second row of an episode only holds its final observation
    return Dataset.from_rows(
        np.zeros((2 * count, 1)), action[twice], reward[twice], np.zeros(2 * count), np.arange(2 * count) % 2 == 1
    )


def train(algorithm: Algorithm, dataset: Dataset, seeds: tuple[int, ...], updates: int) -> Any:
    """The states of all seeds after these updates, the last quarter of them with a tenth of the learning rate.

    Without the slow end, Adam still jumps about the answer, which hides by how much a method misses it.
    """
    keys = seed_keys(seeds)
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    slow = dataclasses.replace(algorithm, learning_rate=algorithm.to_dict()["learning_rate"] / 10)
    fast_updates = updates * 3 // 4
    states, totals = train_chunk(algorithm, states, totals, dataset, keys, 1, fast_updates)
    return train_chunk(slow, states, totals, dataset, keys, fast_updates + 1, updates)[0]


@fast_jit(static_argnames="count")
def draw_actions(algorithm: Algorithm, policies: Any, observations: Array, count: int) -> Array:
    """Actions [seed, observation, count, action] of the policies of all seeds."""
    keys = jax.random.split(jax.random.key(0), count)

    def draw(policy: Any, observation: Array) -> Array:
        return jax.vmap(lambda key: algorithm.act(policy, observation, key))(keys)

    return jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(policies, observations)


@dataclass(frozen=True)
class Outcome:
    """What a method with one weight came to; the figures are for each seed."""

    method: str
    weight: float | None  # of cloning against Q; BC has none
    actions: np.ndarray  # [seed, draw, 2]
    critic: np.ndarray | None  # of the first seed on `grid()`

    @property
    def reward(self) -> np.ndarray:
        return true_reward(self.actions).mean(-1)

    @property
    def inside(self) -> np.ndarray:
        return inside(self.actions).mean(-1)

    @property
    def distance(self) -> np.ndarray:
        """Mean distance from the optimum of the actions in the better disc; NaN where there is none."""
        better = np.linalg.norm(self.actions - BETTER, axis=-1) <= RADIUS
        distance = np.where(better, np.linalg.norm(self.actions - OPTIMUM, axis=-1), 0.0).sum(-1)
        return np.where(better.any(-1), distance / np.maximum(better.sum(-1), 1), np.nan)


def grid(count: int = 81) -> np.ndarray:
    """Actions [count, count, 2] all over the box."""
    axis = np.linspace(-1, 1, count)
    return np.stack(np.meshgrid(axis, axis), -1)


def run(method: str, weight: float | None, dataset: Dataset, seeds: tuple[int, ...], updates: int) -> Outcome:
    """Train a method with one weight and draw from it."""
    own = {"bc": {}, "fql": {"alpha": weight, "normalise_q": True}, "drol": {"bc_weight": weight}}[method]
    rates = {} if method == "bc" else {"target_rate": 0.05}
    algorithm = ALGORITHMS[method](**SMALL, **rates, **own)
    states = train(algorithm, dataset, seeds, updates)
    actions = np.asarray(draw_actions(algorithm, states.policy, jnp.zeros((1, 1)), 4_000))[:, 0]
    if method == "bc":
        return Outcome(method, weight, actions, None)
    critic = jax.tree.map(lambda array: array[0], states.critic.network)
    points = jnp.asarray(grid().reshape(-1, 2), jnp.float32)
    value = np.asarray(critic(jnp.zeros((len(points), 1)), points).mean(0)).reshape(grid().shape[:-1])
    return Outcome(method, weight, actions, value)


def sweep(seeds: tuple[int, ...] = SEEDS, updates: int = UPDATES) -> dict[str, list[Outcome]]:
    """BC once, FQL and DROL with every weight, on the same data."""
    dataset = bandit_data()
    weights = {"bc": (None,), "fql": WEIGHTS, "drol": WEIGHTS}
    return {name: [run(name, weight, dataset, seeds, updates) for weight in each] for name, each in weights.items()}


def best(outcomes: list[Outcome]) -> Outcome:
    """The outcome with the highest expected reward over the seeds."""
    return max(outcomes, key=lambda outcome: outcome.reward.mean())
