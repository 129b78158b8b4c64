"""Numbers of flags."""

import argparse

import pytest

from drol.cli.flags import whole_number


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("1e6", 1_000_000), ("2.0", 2), ("-3", -3)])
def test_whole_numbers_may_have_an_exponent(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e-3", "inf", "nan", "many", "", "1e400"])
def test_other_numbers_are_rejected(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number"):
        whole_number(text)
