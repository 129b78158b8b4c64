import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import refusal

from drol.data.moments import Moments, observation_moments


@settings(deadline=None, max_examples=50)
@given(data=st.data(), rows=st.integers(1, 40), shift=st.sampled_from([0.0, -1e3, 1e8]))
def test_pieces_give_the_moments_of_the_whole(data, rows, shift):
    values = shift + np.random.default_rng(rows).normal(size=(rows, 2, 3))
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=4)))
    moments = Moments()
    for part in np.split(values, cuts):
        moments.add(part)
    flat = values.reshape(rows, 6)
    assert moments.count == rows
    np.testing.assert_array_equal(moments.low, flat.min(0))
    np.testing.assert_array_equal(moments.high, flat.max(0))
    np.testing.assert_allclose(moments.mean, flat.mean(0), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(moments.deviation, flat.std(0), rtol=1e-5, atol=1e-7)


def test_moments_of_large_numbers_do_not_cancel():
    moments = Moments()
    values = 1e8 + np.random.default_rng(0).normal(size=(1000, 1))
    for part in np.split(values, 10):
        moments.add(part)
    assert moments.deviation[0] == pytest.approx(values.std(), rel=1e-6)


def test_dimensions_that_never_change_are_named():
    moments = Moments()
    moments.add(np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]]))
    assert moments.constant == [0, 2]
    moments.add(np.array([[1.0, 2.0, 4.0]]))
    assert moments.constant == [0]


def test_nothing_has_no_moments():
    moments = Moments()
    moments.add(np.zeros((0, 3)))
    assert moments.count == 0
    assert moments.mean.tolist() == moments.deviation.tolist() == []


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e19, 1e30, 1e37])
def test_observations_of_any_size_have_finite_moments(size):
    """In float32 the square of 1e20 is infinite, and what is divided by infinity is zero."""
    values = (size * np.random.default_rng(0).normal(size=(1000, 2))).astype(np.float32)
    mean, deviation = observation_moments(values)
    assert mean.dtype == deviation.dtype == np.float32
    np.testing.assert_allclose(mean, values.mean(0, np.float64), rtol=1e-5)
    np.testing.assert_allclose(deviation, values.std(0, np.float64), rtol=1e-6)


def test_a_dimension_too_wide_for_its_mean_is_named():
    values = np.zeros((10, 3), np.float32)
    values[:, 1] = [-3e38] * 9 + [3e38]
    message = refusal(observation_moments, values)
    assert message.startswith("observation dimension 1 reaches from -3e+38 to 3e+38, too far from its mean")


def test_dimensions_that_hardly_change_are_named():
    moments = Moments()
    moments.add(np.array([[1.0, 0.0, 0.0], [1.0, 1e-8, 1e-3]]))
    assert (moments.constant, moments.tiny, moments.too_wide) == ([0], [1], [])
