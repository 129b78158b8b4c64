"""The image encoder against loops over pixels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drol.networks.encoders import FEATURES, ImageEncoder, NoEncoder, make_encoder, maximum_of_three
from drol.transition import Spec

KEY = jax.random.key(0)
SHAPE = (7, 5, 2)  # odd and not square, so that a swapped axis or a wrong padding shows


def convolve(images: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    batch, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    result = np.zeros((batch, height, width, kernel.shape[-1]))
    for row in range(height):
        for column in range(width):
            patch = padded[:, row : row + 3, column : column + 3]
            result[:, row, column] = np.einsum("bhwi,hwio->bo", patch, kernel) + bias
    return result


def pool(images: np.ndarray) -> np.ndarray:
    """Maximum over 3 x 3 with stride 2; of a padding that does not come out even, the larger part is at the end."""
    batch, height, width, channels = images.shape
    rows, columns = -(-height // 2), -(-width // 2)
    before = [max(2 * count + 1 - size, 0) // 2 for count, size in ((rows, height), (columns, width))]
    padded = np.full((batch, 2 * rows + 1, 2 * columns + 1, channels), -np.inf)
    padded[:, before[0] : before[0] + height, before[1] : before[1] + width] = images
    result = np.zeros((batch, rows, columns, channels))
    for row in range(rows):
        for column in range(columns):
            result[:, row, column] = padded[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3].max((1, 2))
    return result


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def encode(encoder: ImageEncoder, images: np.ndarray) -> np.ndarray:
    x = images / 255
    for stack in jax.tree.map(np.asarray, encoder.stacks):
        pooled = pool(convolve(x, stack.enter.kernel, stack.enter.bias))
        inner = convolve(np.maximum(pooled, 0), stack.first.kernel, stack.first.bias)
        x = pooled + convolve(np.maximum(inner, 0), stack.second.kernel, stack.second.bias)
    features = np.maximum(x, 0).reshape(len(x), -1)
    return gelu(features @ np.asarray(encoder.out.kernel) + np.asarray(encoder.out.bias))


@pytest.fixture(scope="module")
def encoder():
    """With random biases, which are zero when a network is made."""
    like = jax.eval_shape(lambda key: ImageEncoder(key, SHAPE), KEY)
    generator = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(generator.normal(0, 0.3, leaf.shape), jnp.float32), like)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(1).integers(0, 256, (6, *SHAPE), np.uint8)


def test_features_are_those_of_loops_over_pixels(encoder, images):
    found = np.asarray(jax.jit(lambda images: encoder(images))(images))
    expected = encode(encoder, images)
    assert found.shape == (6, FEATURES)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_bytes_as_floats_and_any_leading_axes_give_the_same_features(encoder, images):
    call = jax.jit(lambda observation: encoder(observation))
    expected = np.asarray(call(images))
    np.testing.assert_allclose(call(images.astype(np.float32)), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(call(images.reshape(2, 3, *SHAPE)).reshape(6, -1), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(call(images[3]), expected[3], rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=15)
@given(
    size=st.sampled_from([(1, 1), (2, 3), (7, 5), (8, 6)]), levels=st.sampled_from([2, 1000]), seed=st.integers(0, 100)
)
def test_the_maximum_and_its_gradient_are_those_of_a_window(size, levels, seed):
    """Few levels make ties; the window's gradient goes to the first of equal values."""
    generator = np.random.default_rng(seed)
    images = generator.integers(0, levels, (2, *size, 1)).astype(np.float32)

    def ours(images):
        return maximum_of_three(maximum_of_three(images, axis=2), axis=1)

    def windows(images):
        return jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    found, pull_back = jax.vjp(ours, images)
    expected, pull_back_expected = jax.vjp(windows, images)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, pool(images))
    weight = generator.integers(-9, 10, found.shape).astype(np.float32)
    np.testing.assert_array_equal(pull_back(weight)[0], pull_back_expected(weight)[0])


def test_the_encoder_has_the_size_of_the_small_impala_encoder():
    like = jax.eval_shape(lambda key: ImageEncoder(key, (64, 64, 9)), KEY)
    assert sum(leaf.size for leaf in jax.tree.leaves(like)) == 1_105_920
    assert like.out.kernel.shape == (8 * 8 * 32, 512)


def test_only_images_are_encoded():
    assert isinstance(jax.eval_shape(lambda key: make_encoder(key, Spec((8, 8, 3), 2))[0], KEY), ImageEncoder)
    nothing, size = make_encoder(KEY, Spec((5,), 2))
    assert isinstance(nothing, NoEncoder)
    assert size == 5
