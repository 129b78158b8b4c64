import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import ACTION_SIZE, random_batch

from drol.algorithms.routing import candidate_diagnostics, draw_for_update, nearest_latent


def test_draws_are_independent_and_fill_the_ball_of_radius_sqrt_d_a():
    draws = jax.jit(lambda batch, key: draw_for_update(batch, 16, key))(random_batch(256), jax.random.key(0))
    assert draws.latent.shape == (256, 16, ACTION_SIZE)
    assert draws.next_latent.shape == (256, ACTION_SIZE)
    points = np.concatenate([np.asarray(draws.latent).reshape(-1, ACTION_SIZE), np.asarray(draws.next_latent)])
    assert len(np.unique(points, axis=0)) == 256 * 17
    length = np.linalg.norm(points, axis=-1)
    assert 0.99 * np.sqrt(ACTION_SIZE) < length.max() <= np.sqrt(ACTION_SIZE)


def test_the_latent_is_that_of_the_nearest_candidate():
    generator = np.random.default_rng(0)
    candidates, latent = generator.normal(size=(2, 20, 5, 3))
    action = generator.normal(size=(20, 3))
    found = nearest_latent(*(jnp.asarray(array, jnp.float32) for array in (candidates, latent, action)))
    winner = [np.linalg.norm(each - one, axis=1).argmin() for each, one in zip(candidates, action, strict=True)]
    assert len(set(winner)) > 2  # it is not always the same one
    np.testing.assert_array_equal(found, latent[np.arange(20), winner].astype(np.float32))


def test_ties_go_to_the_lowest_index():
    action, latent = jnp.asarray([[0.9, 0.9]]), jnp.asarray([[[1.0], [2.0], [3.0], [4.0]]])
    candidates = jnp.asarray([[[-1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(nearest_latent(candidates, latent, action), [[2.0]])
    np.testing.assert_array_equal(nearest_latent(candidates[:, ::-1], latent, action), [[1.0]])


@pytest.mark.parametrize("count", [1, 5])
def test_diagnostics_equal_a_double_loop_over_candidates(count):
    generator = np.random.default_rng(0)
    candidates = generator.uniform(-1, 1, (32, count, ACTION_SIZE))
    actions = generator.uniform(-1, 1, (32, ACTION_SIZE))
    found = candidate_diagnostics(jnp.asarray(candidates, jnp.float32), jnp.asarray(actions, jnp.float32))
    pairs, divergence, winners, errors, single = [], [], [], [], []
    for each, action in zip(candidates, actions, strict=True):
        pairs += [np.square(each[j] - each[k]).mean() for j in range(count) for k in range(count) if j != k]
        divergence.append(np.square(each - each.mean(0)).mean())
        squared_error = np.square(each - action).mean(-1)
        winners.append(squared_error.argmin())
        errors.append(squared_error.min())
        single.append(squared_error[0])
    share = np.bincount(winners, minlength=count) / len(winners)
    squared_distance = np.mean(pairs) if pairs else 0.0
    expected = {
        "candidate_squared_distance": squared_distance,
        "candidate_distance": np.sqrt(squared_distance),
        "candidate_divergence": np.mean(divergence),
        "routed_bc_loss": np.mean(errors),
        "single_sample_error": np.mean(single),
        "winner_entropy": -sum(part * np.log(part) for part in share if part > 0),
        "winner_largest_share": share.max(),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name
