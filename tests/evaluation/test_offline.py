import dataclasses

import jax
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import SPEC, random_rows, tiny_task

from drol.algorithms import ALGORITHMS
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.evaluation import fitted_q
from drol.evaluation.held_out import split
from drol.evaluation.offline import Calibration, OfflineEvaluator, OwnCritics, rank_correlation
from drol.policy import Policy

FIGURES = {
    "routed_bc_loss", "single_sample_error", "support_distance", "support_ratio", "outside_support",
    "draw_ratio",
    "value", "value_low", "value_high", "value_rank", "value_bias",
}  # fmt: skip
OWN = {"own_value", "own_rank", "own_bias"}
WITHOUT_OWN = {"bc", "iql", "rebrac"}  # no critic in the policy


def initial_policy(name: str) -> Policy:
    algorithm = ALGORITHMS[name](hidden_sizes=(16, 16))
    networks = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0)).policy
    return Policy(algorithm, networks, Standardisation.identity(SPEC))


@pytest.fixture(scope="module", autouse=True)
def short_start():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted_q, "START_UPDATES", 20)
        yield


@pytest.fixture(scope="module")
def evaluator():
    return OfflineEvaluator(tiny_task(environment=None), discount=0.9, updates=5)


@pytest.mark.slow
def test_policies_that_see_images_are_evaluated():
    rows = random_rows([20] * 10)
    frames = np.random.default_rng(0).integers(0, 256, (len(rows["last"]), 8, 8, 1), np.uint8)
    dataset = Dataset.from_rows(**(rows | {"observation": frames}), frame_stack=3, crop_probability=0.5)
    task = dataclasses.replace(tiny_task(environment=None), train=dataset, validation=dataset)
    algorithm = ALGORITHMS["drol"](hidden_sizes=(16,))
    networks = jax.jit(lambda key: algorithm.init(key, dataset.spec))(jax.random.key(0)).policy
    policy = Policy(algorithm, networks, Standardisation.identity(dataset.spec))
    figures = OfflineEvaluator(task, discount=0.9, updates=1).evaluate(policy)
    assert figures.keys() == FIGURES | OWN
    assert all(value is not None for value in figures.values())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_evaluated(name, evaluator):
    policy = initial_policy(name)
    figures = evaluator.evaluate(policy)
    assert figures.keys() == FIGURES | (set() if name in WITHOUT_OWN else OWN)
    assert all(value is not None for value in figures.values())
    assert figures["value_low"] <= figures["value"] <= figures["value_high"]
    assert figures == evaluator.evaluate(policy)


def test_the_own_critic_sees_the_observations_that_it_was_trained_on():
    policy = initial_policy("drol")
    shifted = Policy(policy.algorithm, policy.networks, Standardisation(np.full(3, 2.0), np.full(3, 0.5)))
    observation, action = np.asarray([[0.3, 1.0, -2.0]]), np.asarray([[0.5, -0.5]])
    expected = policy.networks.critic((observation - 2) / 0.5, action)
    np.testing.assert_allclose(OwnCritics(shifted)(observation, action), expected, rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-5, 5)), min_size=2, max_size=30))
def test_rank_correlation_is_that_of_scipy_and_none_where_nothing_changes(pairs):
    first, second = zip(*pairs, strict=True)
    found = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(scipy.stats.spearmanr(first, second).statistic, abs=1e-9)


def test_calibration_knows_a_critic_that_is_right_and_one_that_is_too_high():
    rows = random_rows([60] * 3)
    rows["continues"] = np.ones(len(rows["reward"]), np.float32)
    rows["observation"] = rows["observation"].copy()
    part = split(tiny_task(validation=Dataset.from_rows(**rows)))[1]
    calibration = Calibration(part, 0.9)
    assert len(calibration.returns) == 3 * (60 - 21)  # 0.9^22 is the first power below a tenth
    right = calibration.figures("q", lambda observation, action: calibration.returns[None])
    assert right == {"q_rank": pytest.approx(1), "q_bias": pytest.approx(0)}
    high = calibration.figures("q", lambda observation, action: calibration.returns[None] + 3)
    assert high == {"q_rank": pytest.approx(1), "q_bias": pytest.approx(3)}


def test_calibration_says_nothing_where_no_return_is_known():
    rows = random_rows([5, 5])
    rows["continues"] = np.ones(len(rows["reward"]), np.float32)
    part = split(tiny_task(validation=Dataset.from_rows(**rows)))[1]
    assert Calibration(part, 0.99).figures("q", None) == {"q_rank": None, "q_bias": None}


@pytest.mark.parametrize("discount", [1.0, -0.1, float("nan")])
def test_a_discount_without_a_value_is_refused(discount):
    with pytest.raises(InputError, match="the discount is"):
        OfflineEvaluator(tiny_task(), discount)
