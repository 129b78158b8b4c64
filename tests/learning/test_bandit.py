"""One pull on a ridge: every method must reach the answer that its own equations have, to a number.

Rewards lie on a ridge bent round the origin, `r = exp(-(|a| - 0.7)^2 / 0.08) (0.6 + 0.4 cos angle)`. Half of the data
is around a point that is worth 0.4, a fifth around the best one, worth 1, and the rest anywhere. So the mean action
lies inside the bend and is worth little, and the way from the poorer mode to the better one is uphill along the ridge.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import draw_actions, train_states

from drol.algorithms import ALGORITHMS
from drol.data.dataset import Dataset

BETTER = np.asarray([0.7, 0.0])
POORER = 0.7 * np.asarray([np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)])
SMALL = {"hidden_sizes": (64, 64), "batch_size": 128, "learning_rate": 1e-3, "target_rate": 0.05}
# The shapes are those of test_chain.py, so that both share their compiled programs: 600 episodes of two pulls, and as
# many draws for each of six observations.
PULLS, UPDATES, DRAWS = 1200, 2_000, 400


def ridge(action):
    length, angle = np.linalg.norm(action, axis=-1), np.arctan2(action[..., 1], action[..., 0])
    return np.exp(-np.square(length - 0.7) / 0.08) * (0.6 + 0.4 * np.cos(angle))


def pulls():
    """The actions of the data and their rewards."""
    generator = np.random.default_rng(0)
    kind = np.arange(PULLS) % 10
    mode = np.where((kind < 2)[:, None], BETTER, POORER) + 0.08 * generator.normal(size=(PULLS, 2))
    action = np.clip(np.where((kind < 7)[:, None], mode, generator.uniform(-1, 1, (PULLS, 2))), -0.99, 0.99)
    return action, ridge(action)


ACTION, REWARD = pulls()


@pytest.fixture(scope="module")
def dataset():
    row = np.arange(3 * PULLS // 2)
    pull = np.minimum(row - row // 3, PULLS - 1)  # every third row ends an episode and holds no pull
    constant = np.tile(np.eye(6, dtype=np.float32)[0], (len(row), 1))
    return Dataset.from_rows(constant, ACTION[pull], REWARD[pull], np.zeros(len(row)), row % 3 == 2)


def expectile(kappa):
    """V with `sum w (r - V) = 0`, weight kappa above V and 1 - kappa below."""
    value = 0.0
    for _ in range(100):
        weight = np.where(value <= REWARD, kappa, 1 - kappa)
        value = (weight * REWARD).sum() / weight.sum()
    return value


def weighted_mean(temperature):
    """The mean action under weights `exp(alpha r)`, which is what advantage weights come to at one observation."""
    weight = np.exp(temperature * REWARD)
    return weight @ ACTION / weight.sum()


# Of each method: hyperparameters, the mean action that they imply, and what its value function (if any) must say.
ANSWERS = {
    "drol": ({"bc_weight": 0.03}, BETTER, None),
    "drol-equation": ({"alpha": 10.0}, BETTER, None),
    "bc": ({}, ACTION.mean(0), None),
    "iql": ({"alpha": 10.0}, weighted_mean(10.0), expectile(0.9)),
    "rebrac": ({"actor_bc_weight": 0.03}, BETTER, None),
    "fawac": ({"alpha": 3.0}, weighted_mean(3.0), REWARD.mean()),
    "fbrac": ({"alpha": 0.03}, BETTER, None),
    "ifql": ({"num_samples": 1}, ACTION.mean(0), expectile(0.9)),  # of one sample; the best of many is tested below
    "deflow": ({"target_divergence": 1.0, "initial_log_alpha": -3.0}, BETTER, None),
    "sorl": ({"q_weight": 10_000.0}, BETTER, None),
    "fql": ({"alpha": 0.03}, BETTER, None),
    "driftql": ({"alpha": 0.03, "num_candidates": 8}, BETTER, None),
    "gfp": ({"alpha": 0.03}, BETTER, None),
    "drol-control": ({"bc_weight": 0.03, "winner": "lagged"}, BETTER, None),
}
# Methods that the critic chooses for, which have no one answer: of each, the hyperparameter that is N.
CHOOSING = {"bfn": "num_samples", "drol-choice": "target_candidates"}


def build(name, **hyperparameters):
    settings = {key: value for key, value in SMALL.items() if name != "bc" or key != "target_rate"}
    return ALGORITHMS[name](**settings, **hyperparameters)


def draws_of(algorithm, states):
    """Actions [DRAWS, 2] for the one observation of the data."""
    return np.asarray(draw_actions(algorithm, states.policy, jnp.eye(6), DRAWS))[0, 0]


def share_near(actions, mode):
    return (np.linalg.norm(actions - mode, axis=1) < 0.25).mean()


def test_the_problem_is_what_its_description_says():
    np.testing.assert_allclose(ridge(np.stack([BETTER, POORER])), [1, 0.4])
    assert ridge(ACTION.mean(0)) < 0.1
    assert ridge(BETTER) == pytest.approx(ridge(np.random.default_rng(1).uniform(-1, 1, (10_000, 2))).max(), abs=0.01)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_method_reaches_its_known_answer(name, dataset):
    hyperparameters, answer, value = ANSWERS[name]
    algorithm = build(name, **hyperparameters)
    states = train_states(algorithm, dataset, (0,), UPDATES)
    state = jax.tree.map(lambda array: array[0], states)
    actions = draws_of(algorithm, states)
    assert np.linalg.norm(actions.mean(0) - answer) < 0.1
    if answer is BETTER:
        assert share_near(actions, BETTER) > 0.9
    if name == "bc":
        return
    critic = state.networks.network.critic if name in ("rebrac", "sorl") else state.critic.network
    for conditions in [(1.0,), (8.0,)] if name == "sorl" else [()]:  # SORL's critic takes the number of steps
        modes = jnp.asarray(np.stack([BETTER, POORER]), jnp.float32)
        q = critic(jnp.tile(jnp.eye(6)[0], (2, 1)), modes, *conditions)
        np.testing.assert_allclose(q, [[1.0, 0.4]] * 2, atol=0.07)
    if value is not None:
        assert state.value.network(jnp.eye(6)[0]) == pytest.approx(value, abs=0.05)
    if name == "ifql":  # the same networks, with and without the choice among samples
        best_of_32 = draws_of(dataclasses.replace(algorithm, num_samples=32), states)
        assert share_near(actions, POORER) > 0.2
        assert share_near(best_of_32, POORER) == 0
        assert np.linalg.norm(best_of_32.mean(0) - BETTER) < 0.1


@pytest.mark.parametrize(("name", "heavy"), [("drol", {"bc_weight": 30.0}), ("fql", {"alpha": 30.0})])
def test_a_heavy_weight_on_the_data_keeps_both_modes(name, heavy, dataset):
    algorithm = build(name, **heavy)
    actions = draws_of(algorithm, train_states(algorithm, dataset, (0,), UPDATES))
    assert share_near(actions, BETTER) > 0.06  # of draws anywhere in the box 0.05 would be near each
    assert share_near(actions, POORER) > 0.12


@pytest.mark.parametrize("name", CHOOSING)
def test_clones_keep_both_modes_and_the_critic_chooses_the_better_one(name, dataset):
    algorithm = build(name)
    states = train_states(algorithm, dataset, (0,), UPDATES)
    one, many = (draws_of(dataclasses.replace(algorithm, **{CHOOSING[name]: count}), states) for count in (1, 32))
    assert share_near(one, BETTER) > 0.06  # of draws anywhere in the box 0.05 would be near each
    assert share_near(one, POORER) > 0.12
    assert share_near(many, POORER) == 0
    assert np.linalg.norm(many.mean(0) - BETTER) < 0.1
    critic = jax.tree.map(lambda array: array[0], states.critic.network)
    q = critic(jnp.tile(jnp.eye(6)[0], (2, 1)), jnp.asarray(np.stack([BETTER, POORER]), jnp.float32))
    np.testing.assert_allclose(q, [[1.0, 0.4]] * 2, atol=0.07)
    if name == "drol-choice":
        student = draws_of(dataclasses.replace(algorithm, one_pass=True), states)  # which learnt the best of 4
        assert share_near(student, BETTER) > 2 * share_near(one, BETTER)
        assert share_near(student, POORER) < share_near(one, POORER) / 2
