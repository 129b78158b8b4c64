"""Facts of the support audit on data whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import SPEC, random_rows, tiny_task

from drol.algorithms import ALGORITHMS
from drol.algorithms.base import Algorithm, hyperparameter
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.evaluation.support import (
    DRAWS,
    HeldOut,
    action_distance,
    draw_actions,
    draw_precision,
    hold_out,
    leaves_support,
    measure_states,
    nearest,
    offline_scores,
    support_warning,
)
from drol.policy import Policy


class Shifted(Algorithm):
    """Acts with the first two numbers of the observation, and noise around them."""

    shift: float = hyperparameter(0.0, "added to both")
    noise: float = hyperparameter(0.0, "standard deviation")
    batch_size: int = hyperparameter(8, "transitions")

    def init(self, key, spec):
        raise NotImplementedError

    def update(self, state, batch, key):
        raise NotImplementedError

    def act(self, policy, observation, key, best_of=None):
        return observation[:2] + self.shift + self.noise * jax.random.normal(key, (2,))


def policy_of(algorithm) -> Policy:
    return Policy(algorithm, (), Standardisation.identity(SPEC))


def copied_task():
    """Data in which the action is the first two numbers of the state, with a little noise."""

    def rows(lengths, seed):
        made = random_rows(lengths, seed)
        made["observation"] = np.random.default_rng(seed).uniform(-0.7, 0.7, made["observation"].shape)
        noise = np.random.default_rng(seed + 1).normal(0, 0.05, made["action"].shape)
        made["action"] = np.clip(made["observation"][:, :2] + noise, -0.99, 0.99)
        return Dataset.from_rows(**made)

    return tiny_task(train=rows([400] * 10, 0), validation=rows([300], 7))


@pytest.fixture(scope="module")
def held_out() -> HeldOut:
    return hold_out(copied_task())


@settings(max_examples=30, deadline=None)
@given(points=st.integers(1, 40), size=st.integers(1, 4), count=st.integers(1, 8), seed=st.integers(0, 99))
def test_the_nearest_points_are_the_nearest(points, size, count, seed):
    generator = np.random.default_rng(seed)
    known, queries = generator.normal(size=(points, size)), generator.normal(size=(70, size))
    found = nearest(known, queries, count)
    distance = np.linalg.norm(queries[:, None] - known, axis=-1)
    expected = np.sort(distance, -1)[:, : min(count, points)]
    np.testing.assert_allclose(np.sort(np.take_along_axis(distance, found, -1), -1), expected, atol=1e-6)


def test_images_have_neighbours_too():
    images = np.random.default_rng(0).integers(0, 255, (20, 4, 4, 3)).astype(np.float32)
    assert nearest(images, images[[3, 11]], 1).tolist() == [[3], [11]]


def test_the_distance_of_an_action_is_that_to_the_nearest_neighbours_action_for_each_dimension():
    neighbours = jnp.asarray([[[0.0, 0.0], [1.0, 1.0]]])
    assert action_distance(jnp.asarray([[0.9, 0.8]]), neighbours)[0] == pytest.approx(np.sqrt((0.01 + 0.04) / 2))
    assert action_distance(jnp.asarray([[0.0, 0.0]]), neighbours)[0] == 0


def test_a_policy_that_copies_is_inside_and_one_that_does_not_is_outside(held_out):
    copies = offline_scores(policy_of(Shifted(noise=0.05)), held_out, jax.random.key(0))
    assert copies["support_ratio"] == pytest.approx(1, abs=0.15)
    assert copies["outside_support"] == pytest.approx(0.05, abs=0.03)
    assert copies["single_sample_error"] == pytest.approx(2 * 0.05**2, rel=0.15)
    assert copies["routed_bc_loss"] < 0.3 * copies["single_sample_error"]
    strays = offline_scores(policy_of(Shifted(shift=1.0)), held_out, jax.random.key(0))
    assert strays["outside_support"] > 0.95
    assert strays["support_ratio"] > 5 * copies["support_ratio"]
    assert strays["single_sample_error"] == pytest.approx(1.0, rel=0.05)


def test_draws_are_as_precise_as_their_distance_to_the_data_says(held_out):
    copies = draw_precision(policy_of(Shifted(noise=0.05)), held_out, jax.random.key(0))
    assert copies.ratio == pytest.approx(1, abs=0.15)
    assert copies.outside == pytest.approx(0.05, abs=0.03)
    assert copies.data == pytest.approx(float(held_out.data_distance.mean()), rel=1e-5)
    assert copies.data_worst == pytest.approx(float(jnp.quantile(held_out.data_distance, 0.95)), rel=1e-5)
    vague = draw_precision(policy_of(Shifted(noise=0.5)), held_out, jax.random.key(0))
    assert vague.ratio > 3
    assert vague.draw_worst > vague.draw > copies.draw


def test_precision_is_that_of_draws_before_the_critic_chooses():
    algorithm = ALGORITHMS["bfn"](hidden_sizes=(16, 16))
    networks = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0)).policy
    policy, key = Policy(algorithm, networks, Standardisation.identity(SPEC)), jax.random.key(0)
    held_out = hold_out(tiny_task())
    one, chosen = (offline_scores(policy, held_out, key, best_of)["support_ratio"] for best_of in (1, None))
    assert draw_precision(policy, held_out, key).ratio == pytest.approx(one, rel=1e-5)
    assert one != pytest.approx(chosen, rel=1e-3)


def test_the_same_key_gives_the_same_figures(held_out):
    policy = policy_of(Shifted(noise=0.3))
    first, again, other = (offline_scores(policy, held_out, jax.random.key(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_held_out_states_of_a_task_without_validation_data_are_not_their_own_neighbours():
    task = tiny_task(validation=None)
    held_out = hold_out(task)
    assert len(held_out.action) == 50
    assert float(held_out.data_distance.min()) > 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_figures(name):
    algorithm = ALGORITHMS[name](hidden_sizes=(16, 16))
    networks = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0)).policy
    policy = Policy(algorithm, networks, Standardisation.identity(SPEC))
    held_out = hold_out(tiny_task())
    figures = offline_scores(policy, held_out, jax.random.key(0))
    assert all(np.isfinite(value) for value in figures.values())
    assert figures["routed_bc_loss"] <= figures["single_sample_error"] * (1 + 1e-5)
    drawn = draw_actions(policy, held_out.observation, jax.random.key(0), 1)
    assert drawn.shape == (DRAWS if algorithm.draws_actions else 1, 30, 2)


def test_a_policy_far_outside_the_data_is_reported_in_one_sentence():
    held_out = hold_out(copied_task())
    near, far = (
        offline_scores(policy_of(Shifted(shift)), held_out, jax.random.key(0))["outside_support"] for shift in (0, 0.5)
    )
    assert not leaves_support(near)
    assert support_warning(near) is None
    assert support_warning(None) is None
    assert leaves_support(far)
    words = support_warning(far, "the policy of step 5")
    assert words.startswith(f"{far:.0%} of the actions of the policy of step 5 lie outside the data, against 5% of")
    assert "train again with" in words


def test_means_over_states_are_the_scores():
    held_out = hold_out(copied_task())
    policy, key = policy_of(Shifted(0.1, 0.1)), jax.random.key(0)
    error, outside = measure_states(policy, held_out, key)
    scores = offline_scores(policy, held_out, key)
    assert float(error.mean()) == pytest.approx(scores["single_sample_error"])
    assert float(outside.mean()) == pytest.approx(scores["outside_support"])
    assert error.shape == outside.shape == held_out.trajectory.shape
