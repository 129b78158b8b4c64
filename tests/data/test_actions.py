import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from drol.data.actions import ActionBox
from drol.errors import InputError

NUMBERS = st.floats(-1e6, 1e6, width=32)


@given(low=arrays(np.float64, 3, elements=NUMBERS), width=arrays(np.float64, 3, elements=st.floats(1e-3, 1e6)))
def test_the_corners_are_one_and_the_way_back_is_the_same(low, width):
    box = ActionBox(tuple(low.tolist()), tuple((low + width).tolist()))
    np.testing.assert_allclose(box.to_unit(np.array(box.low)), -1, atol=1e-5)
    np.testing.assert_allclose(box.to_unit(np.array(box.high)), 1, atol=1e-5)
    middle = low + 0.3 * width
    np.testing.assert_allclose(box.from_unit(box.to_unit(middle)), middle, rtol=1e-9, atol=1e-6)


def test_a_dimension_without_width_becomes_zero():
    box = ActionBox((2.0,), (2.0,))
    assert box.to_unit(np.array([2.0])) == [0.0]
    for unit in (-1.0, 0.0, 0.7):
        assert box.from_unit(np.array([unit])) == [2.0]


def test_one_number_stands_for_all_dimensions():
    assert ActionBox.of((-2,), (2,), 3) == ActionBox((-2.0,) * 3, (2.0,) * 3)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ((1, 2), (3,), "action low has 2 numbers and action high 1"),
        ((3,), (1,), "action low 3 and high 1 of dimension 0 are no box"),
        ((float("nan"),), (1,), "are no box"),
        ((0,), (float("inf"),), "are no box"),
    ],
)
def test_what_is_no_box_is_refused(low, high, words):
    with pytest.raises(InputError, match=words):
        ActionBox(low, high)


def test_a_box_of_another_size_is_refused():
    with pytest.raises(InputError, match="the action box has 2 numbers; actions have 3, so give 3 or 1"):
        ActionBox.of((0, 0), (1, 1), 3)
