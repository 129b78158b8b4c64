import dataclasses
import json

import jax
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import SPEC, TINY, random_rows, tiny_config, tiny_task

from drol.algorithms import ALGORITHMS
from drol.checkpoints import step_name
from drol.data.dataset import Dataset
from drol.data.trajectories import split
from drol.errors import InputError
from drol.evaluation import fitted_q
from drol.evaluation import offline as offline_evaluation
from drol.evaluation.offline import (
    Calibration,
    OfflineEvaluator,
    evaluate_run_offline,
    own_critic,
    rank_correlation,
)
from drol.policy import Policy, Standardisation, save_policies
from drol.runs.directory import RunDirectory

pytestmark = pytest.mark.usefixtures("quick_compile")
FIGURES = {
    "routed_bc_loss", "single_sample_error", "support_distance", "support_ratio", "outside_support",
    "value", "value_low", "value_high", "value_rank", "value_bias",
}  # fmt: skip
OWN = {"own_value", "own_rank", "own_bias"}
WITHOUT_OWN = {"bc", "iql", "rebrac", "sorl"}  # no critic in the policy, or one that asks for more than an action


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
    critic = own_critic(shifted, 2)
    assert critic is not None
    expected = policy.networks.critic((observation - 2) / 0.5, action)
    np.testing.assert_allclose(critic(observation, action), expected, rtol=1e-5)


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


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A run of two seeds with three saved policies, on a task without an environment."""
    monkeypatch.setattr(offline_evaluation, "load_task", lambda name, dataset: tiny_task(environment=None))
    directory = RunDirectory(tmp_path)
    directory.write_config({"run": tiny_config().to_dict()})
    stacked = jax.vmap(lambda key: TINY.init(key, SPEC).policy)(jax.random.split(jax.random.key(0), 2))
    for step in (0, 6, 12):
        tree = (stacked, Standardisation.identity(SPEC))
        save_policies(directory.policies / step_name(step), TINY, tree, SPEC, (0, 7))
    return directory


def test_the_rows_of_a_run_are_recorded_and_a_repeated_one_replaces_the_first(directory):
    rows = list(evaluate_run_offline(directory, updates=3))
    assert [(row["step"], row["seed"]) for row in rows] == [(12, 0), (12, 7)]
    assert rows[0]["discount"] == TINY.discount
    assert rows[0]["unseen"] is True
    assert directory.read_offline_evaluations() == rows
    again = list(evaluate_run_offline(directory, every_step=True, updates=3, discount=0.5))
    assert [(row["step"], row["seed"]) for row in again] == [(step, seed) for step in (0, 6, 12) for seed in (0, 7)]
    assert directory.read_offline_evaluations() == again
    json.loads(directory.offline.read_text().splitlines()[0], parse_constant=lambda name: pytest.fail(name))
    directory.rewind(6)
    assert [row["step"] for row in directory.read_offline_evaluations()] == [0, 0, 6, 6]


def test_a_row_that_was_had_survives_an_interruption(directory):
    rows = evaluate_run_offline(directory, every_step=True, updates=3)
    first = next(rows)
    rows.close()
    assert directory.read_offline_evaluations() == [first]


def test_a_step_that_was_not_saved_is_refused(directory):
    with pytest.raises(InputError, match=r"no policy of step 5 in .*; it has 0, 6, 12"):
        next(evaluate_run_offline(directory, step=5))
    with pytest.raises(InputError, match="updates is 0 and best_of is 1; both must be at least 1"):
        next(evaluate_run_offline(directory, updates=0))
