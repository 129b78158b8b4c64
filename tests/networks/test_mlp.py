import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import random_tree

from drol.networks.mlp import MLP, LayerNorm, Linear


def gelu(x):
    """The approximation with tanh, as jax has it."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def normalise(x, scale, bias):
    return scale * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) + bias


def make(layer_norm, seed=0):
    like = jax.eval_shape(lambda key: MLP(key, 3, (16, 8), 2, layer_norm=layer_norm), jax.random.key(0))
    return random_tree(like, seed)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("rows", [(), (5,), (4, 5)])
def test_a_hidden_layer_is_linear_then_gelu_then_layer_norm(layer_norm, rows):
    network = make(layer_norm)
    x = np.random.default_rng(0).normal(size=(*rows, 3))
    expected = x
    for index in range(2):
        layer = network.layers[index]
        expected = gelu(expected @ np.asarray(layer.kernel, np.float64) + np.asarray(layer.bias))
        if layer_norm:
            norm = network.norms[index]
            expected = normalise(expected, np.asarray(norm.scale), np.asarray(norm.bias))
    expected = expected @ np.asarray(network.layers[2].kernel, np.float64) + np.asarray(network.layers[2].bias)
    assert expected.shape == (*rows, 2)
    np.testing.assert_allclose(network(jnp.asarray(x, jnp.float32)), expected, rtol=0, atol=3e-6)


def test_layer_norm_adds_a_millionth_to_the_variance():
    row = jnp.asarray([[1e-3, -1e-3], [5.001, 4.999]])  # variance 1e-6, so the result is 1 / sqrt(2), not 1
    np.testing.assert_allclose(LayerNorm(2)(row)[0], [np.sqrt(0.5), -np.sqrt(0.5)], rtol=1e-5)
    np.testing.assert_allclose(LayerNorm(2)(row)[1], [np.sqrt(0.5), -np.sqrt(0.5)], rtol=1e-3)
    np.testing.assert_array_equal(LayerNorm(3)(jnp.full((1, 3), 7.0)), np.zeros((1, 3)))


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_kernel_is_glorot_uniform_and_a_bias_zero(scale):
    layer = jax.jit(lambda key: Linear(key, 60, 200, scale))(jax.random.key(0))
    limit = np.sqrt(scale * 6 / (60 + 200))
    kernel = np.asarray(layer.kernel)
    assert kernel.shape == (60, 200)
    assert 0.999 * limit < np.abs(kernel).max() <= limit * (1 + 1e-6)
    assert kernel.var() == pytest.approx(limit**2 / 3, rel=0.03)
    assert abs(kernel.mean()) < 0.02 * limit
    np.testing.assert_array_equal(layer.bias, np.zeros(200))


def test_a_network_starts_with_kernels_of_its_own_and_only_the_last_is_scaled():
    network = jax.jit(lambda key: MLP(key, 50, (50, 50), 50, layer_norm=True, out_scale=0.01))(jax.random.key(0))
    limit = np.sqrt(6 / 100)
    for layer, factor in zip(network.layers, (1.0, 1.0, 0.1), strict=True):
        assert np.abs(layer.kernel).max() == pytest.approx(factor * limit, rel=0.01)
        np.testing.assert_array_equal(layer.bias, np.zeros(50))
    assert not np.array_equal(network.layers[0].kernel, network.layers[1].kernel)
    for norm in network.norms:
        np.testing.assert_array_equal(norm.scale, np.ones(50))
        np.testing.assert_array_equal(norm.bias, np.zeros(50))
