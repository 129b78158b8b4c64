"""A chain of states whose values are known in closed form, with one way to end by time and one way to end for good.

    0 -> 1 -> 2 -> 3 -> end, reward 1 on the last step        Q = 0.9^3, 0.9^2, 0.9, 1
    4 -> 1, reward 0.5, then time is out: bootstraps          Q = 0.5 + 0.9 Q(1)
    5 -> 3, reward 0.25, and the task is over: does not       Q = 0.25, though state 3 is worth 1

Each state has one action, with some spread that changes nothing. So a policy held to the data acts it, and V = Q.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import draw_actions, train_states

from drol.algorithms import ALGORITHMS
from drol.data.dataset import Dataset

SMALL = {"hidden_sizes": (64, 64), "batch_size": 128, "learning_rate": 1e-3, "target_rate": 0.05, "discount": 0.9}
ACTION = np.asarray([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5], [-0.5, -0.5], [0.0, 0.6], [0.6, 0.0]])
Q = np.asarray([0.9**3, 0.9**2, 0.9, 1.0, 0.5 + 0.9**3, 0.25])
EPISODES = 200  # of each kind

# Weights that hold every policy to the data; ReBRAC's penalty on the target action would lower the values.
HELD = {
    "drol": {"bc_weight": 10.0},
    "drol-equation": {"alpha": 0.1},
    "bc": {},
    "iql": {},
    "rebrac": {"actor_bc_weight": 3.0, "critic_bc_weight": 0.0},
    "fawac": {},
    "fbrac": {"alpha": 10.0},
    "ifql": {"num_samples": 1},
    "deflow": {"target_divergence": 0.001, "initial_log_alpha": 3.0},
    "sorl": {"q_weight": 1.0},
    "fql": {"alpha": 10.0},
    "driftql": {"alpha": 10.0, "num_candidates": 8},
    "gfp": {"alpha": 10.0, "temperature": 10.0},
    "bfn": {},
    "drol-choice": {},
    "drol-control": {"bc_weight": 10.0, "winner": "random"},
}


@pytest.fixture(scope="module")
def dataset():
    # The row after an end for good shows a state of value too: bootstrapping from it would be seen.
    state = np.tile([0, 1, 2, 3, 0, 4, 1, 5, 3], EPISODES)
    spread = np.random.default_rng(0).uniform(-0.2, 0.2, (len(state), 2))
    return Dataset.from_rows(
        observation=np.eye(6, dtype=np.float32)[state],
        action=ACTION[state] + spread,
        reward=np.tile([0, 0, 0, 1, 0, 0.5, 0, 0.25, 0], EPISODES),
        continues=np.tile([1, 1, 1, 0, 0, 1, 0, 0, 0], EPISODES),
        last=np.tile([0, 0, 0, 0, 1, 0, 1, 0, 1], EPISODES),
    )


@pytest.mark.parametrize("name", HELD)
def test_every_method_finds_the_actions_and_the_values_of_a_chain(name, dataset):
    settings = {key: value for key, value in SMALL.items() if name != "bc" or key not in ("target_rate", "discount")}
    algorithm = ALGORITHMS[name](**settings, **HELD[name])
    states = train_states(algorithm, dataset, (0,), 1_600)
    actions = np.asarray(draw_actions(algorithm, states.policy, jnp.eye(6), 400))[0]  # [state, draw, 2]
    np.testing.assert_allclose(actions.mean(1), ACTION, atol=0.1)
    if name == "bc":
        return
    state = jax.tree.map(lambda array: array[0], states)
    critic = state.networks.network.critic if name in ("rebrac", "sorl") else state.critic.network
    for conditions in [(1.0,), (8.0,)] if name == "sorl" else [()]:  # SORL's critic takes the number of steps
        q = critic(jnp.eye(6), jnp.asarray(ACTION, jnp.float32), *conditions)
        np.testing.assert_allclose(q, np.stack([Q, Q]), atol=0.06)
    if hasattr(state, "value"):
        np.testing.assert_allclose(state.value.network(jnp.eye(6)), Q, atol=0.06)
