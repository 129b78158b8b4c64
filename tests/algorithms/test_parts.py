import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from drol.algorithms.parts import Trainable, aggregate, clip, descend, polyak, trainable, uniform_in_ball


@pytest.mark.parametrize(("dimension", "radius"), [(2, 1.0), (5, 2.5), (8, np.sqrt(8))])
def test_points_are_uniform_in_the_ball(dimension, radius):
    count = 100_000
    draw = jax.jit(lambda key: uniform_in_ball(key, (count, dimension), radius))
    points = np.asarray(draw(jax.random.key(dimension)), np.float64)
    assert points.shape == (count, dimension)
    length = np.linalg.norm(points, axis=-1) / radius
    assert length.max() <= 1
    # |z|^2 / R^2 has mean d / (d + 2) and variance at most 1 / 12, each coordinate variance 1 / (d + 2); five sigma.
    assert np.square(length).mean() == pytest.approx(dimension / (dimension + 2), abs=5 * np.sqrt(1 / 12 / count))
    assert np.abs(points.mean(0)).max() < 5 * radius * np.sqrt(1 / (dimension + 2) / count)
    # The share within r R is r^d: at the median radius it is a half.
    assert (length < 0.5 ** (1 / dimension)).mean() == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / count))
    covariance = np.cov(points.T) / radius**2 * (dimension + 2)
    np.testing.assert_allclose(covariance, np.eye(dimension), atol=0.03)


def test_clip_is_the_identity_with_slope_one_inside_and_flat_outside():
    actions = jnp.asarray([-5.0, -1.01, -0.99, 0.0, 0.3, 0.99, 1.01, 7.0])
    np.testing.assert_array_equal(clip(actions), np.asarray([-1, -1, -0.99, 0, 0.3, 0.99, 1, 1], np.float32))
    np.testing.assert_array_equal(jax.vmap(jax.grad(clip))(actions), [0, 0, 1, 1, 1, 1, 0, 0])


def test_polyak_moves_the_target_a_share_of_the_way():
    online = {"a": jnp.asarray([1.0, 2.0]), "b": jnp.asarray(10.0)}
    target = {"a": jnp.asarray([3.0, 2.0]), "b": jnp.asarray(0.0)}
    moved = polyak(online, target, 0.25)
    np.testing.assert_allclose(moved["a"], [2.5, 2.0])
    np.testing.assert_allclose(moved["b"], 2.5)
    assert polyak(online, target, 0.0)["b"] == 0
    assert polyak(online, target, 1.0)["b"] == 10


def test_aggregate_is_over_the_ensemble():
    values = jnp.asarray([[1.0, 5.0, -2.0], [3.0, 1.0, -4.0]])
    np.testing.assert_array_equal(aggregate(values, "min"), [1, 1, -4])
    np.testing.assert_array_equal(aggregate(values, "mean"), [2, 3, -3])


def test_descend_takes_the_steps_of_adam():
    network = {"w": jnp.asarray([1.0, -2.0, 0.5]), "b": jnp.asarray(0.1)}

    def loss(network, scale):
        value = scale * jnp.square(jnp.sin(network["w"]).sum() + network["b"]) + jnp.square(network["w"][0])
        return value, {"loss": value}

    adam = optax.adam(0.01)
    expected, adam_state = network, adam.init(network)
    trained: Trainable = trainable(network)
    for number in range(5):
        gradient = jax.grad(lambda network, n=number: loss(network, 1.0 + n)[0])(expected)
        value = loss(expected, 1.0 + number)[0]
        updates, adam_state = adam.update(gradient, adam_state)
        expected = optax.apply_updates(expected, updates)
        trained, metrics = descend(trained, 0.01, loss, 1.0 + number)
        assert metrics["loss"] == pytest.approx(float(value), rel=1e-5)  # of the network before the step
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6), trained.network, expected)
    assert np.abs(trained.network["w"] - network["w"]).max() > 0.03
