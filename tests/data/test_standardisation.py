import jax.numpy as jnp
import numpy as np
import pytest
from step_files import refusal

from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.transition import Spec

OBSERVATION = jnp.asarray([[1.0, 7.0], [3.0, 7.0], [5.0, 7.0], [7.0, 7.0]])


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_data_of_the_moments_gets_mean_zero_and_the_scale_as_deviation(scale):
    found = Standardisation.from_moments(OBSERVATION.mean(0), OBSERVATION.std(0), scale)
    np.testing.assert_allclose(found.mean, [4, 7])
    np.testing.assert_allclose(found.deviation, [np.sqrt(5) / scale, 1 / scale], rtol=1e-6)
    scaled = np.asarray(found(OBSERVATION))
    np.testing.assert_allclose(scaled.mean(0), [0, 0], atol=1e-6)
    np.testing.assert_allclose(scaled.std(0), [scale, 0], atol=1e-6)


def test_a_constant_dimension_is_only_shifted():
    found = Standardisation.from_moments(np.float32([4, 7]), np.float32([0, 9e-7]))
    np.testing.assert_array_equal(found.deviation, [1, 1])
    np.testing.assert_array_equal(found(OBSERVATION), OBSERVATION - np.float32([4, 7]))


def test_moments_of_numpy_and_of_jax_give_the_same():
    mean, deviation = np.float32([4, 7]), np.float32([2, 3])
    found = Standardisation.from_moments(mean, deviation, 0.3)
    other = Standardisation.from_moments(jnp.asarray(mean), jnp.asarray(deviation), 0.3)
    np.testing.assert_array_equal(found(OBSERVATION), other(OBSERVATION))


@pytest.mark.parametrize("shape", [(2,), (8, 8, 3)])
def test_the_identity_changes_nothing(shape):
    observation = jnp.asarray(np.random.default_rng(0).normal(size=(5, *shape)), jnp.float32)
    np.testing.assert_array_equal(Standardisation.identity(Spec(shape, 1))(observation), observation)


def test_huge_observations_are_standardised_and_not_made_zeros():
    values = (1e30 * np.random.default_rng(0).normal(size=(1000, 3))).astype(np.float32)
    found = Standardisation.from_moments(*observation_moments(values))
    scaled = np.asarray(found(jnp.asarray(values)))
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(0), 1, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-10, 1e300])
def test_a_scale_that_float32_cannot_give_is_refused_by_dimension(scale):
    message = refusal(Standardisation.from_moments, np.zeros(2), np.float32([1, 1e30]), scale)
    number = 1 if scale < 1 else 0
    assert message.startswith(f"observation dimension {number} has the deviation ")
    assert "--observation-scale" in message
