import numpy as np
import pytest
from step_files import refusal

from drol.data.dimensions import Dimensions, Naming, in_order, named_or_numbered

ARM = Dimensions(("a", "b"), ("rad", "m"), ("base", "base"))


def test_named_numbers_are_put_in_order():
    np.testing.assert_array_equal(in_order({"b": 2.0, "a": 1.0}, ARM), [1, 2])
    np.testing.assert_array_equal(in_order({"b": [2.0, 4.0], "a": [1.0, 3.0]}, ARM), [[1, 2], [3, 4]])
    given = [5.0, 6.0]
    assert in_order(given, ARM) is given


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a": 1}, "the observation lacks the name 'b'; this policy takes a, b"),
        ({"a": 1, "b": 2, "c": 3}, "the observation has an unknown name 'c'; this policy takes a, b"),
        ({"a": [1], "b": [2, 3]}, "the named values have different shapes"),
    ],
)
def test_missing_and_unknown_names_are_refused(values, words):
    assert words in refusal(in_order, values, ARM)
    assert "knows no names" in refusal(in_order, values, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((("a", "a"),), "'a' is repeated"),
        ((("a", ""),), "is repeated or empty"),
        ((("a", "b"), ("m",)), "there are 1 units for 2 names"),
        (((1, 2),), "names are texts"),
        ((("x" * 201,),), "up to 200 letters"),
    ],
)
def test_names_that_are_none_are_refused(arguments, words):
    assert words in refusal(Dimensions, *arguments)


def test_they_are_stored_and_read_again():
    assert Dimensions.from_dict(ARM.to_dict(), 2) == ARM
    assert Dimensions.from_dict(None, 2) is None
    assert "2 names for 3 numbers" in refusal(Dimensions.from_dict, ARM.to_dict(), 3)
    for odd in (5, [], {"units": []}, {"names": "ab"}, {"names": ["a", 1]}, {"names": ["a", "b"], "unit": []}):
        assert refusal(Dimensions.from_dict, odd, 2)


def test_what_is_given_comes_first():
    assert Naming().applied(ARM, "action", 2) is ARM
    assert Naming(units=("cm",)).applied(ARM, "action", 2) == Dimensions(("a", "b"), ("cm", "cm"), ("base", "base"))
    assert Naming(names=("x", "y")).applied(None, "action", 2) == Dimensions(("x", "y"))
    assert "--action-names gives 1 names for 2" in refusal(Naming(names=("x",)).applied, ARM, "action", 2)
    assert "--action-units gives 3 for 2" in refusal(Naming(units=("a", "b", "c")).applied, ARM, "action", 2)
    assert "--action-names gives 0 names" in refusal(Naming(units=("m",)).applied, None, "action", 2)


def test_people_see_names_or_numbers():
    assert named_or_numbered(ARM, "action", 2) == ["a", "b"]
    assert named_or_numbered(None, "action", 2) == ["action 0", "action 1"]
    assert named_or_numbered(None, "reward", 1) == ["reward"]
    assert ARM.describe() == ["a [rad] in base", "b [m] in base"]
