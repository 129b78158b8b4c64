import pytest

from drol.results.verdicts import corrected, enough_seeds, is_decided, p_words, score_interval


def test_a_verdict_needs_three_seeds_of_each():
    assert enough_seeds(3, 8)
    assert not enough_seeds(2, 8)
    assert not enough_seeds()


def test_the_interval_of_success_rates_is_never_narrower_than_that_of_the_episodes():
    assert score_interval([0, 0, 0], (0, 24)) == pytest.approx((0, 13.80), abs=0.01)  # Wilson; never 0 to 0
    assert score_interval([0], (0, 8)) == pytest.approx((0, 32.44), abs=0.01)
    assert score_interval([65, 75], (140, 200)) == pytest.approx((6.469, 100), abs=0.001)  # Student


def test_other_scores_have_the_interval_of_their_seeds_or_none():
    assert score_interval([1.0, 2.0, 3.0]) == pytest.approx((-0.484, 4.484), abs=0.001)
    assert score_interval([5.0]) is None
    assert score_interval([5.0, 5.0, 5.0]) is None  # three equal seeds do not make a fourth certain


def test_holm_corrects_for_the_comparisons_that_were_tested():
    assert corrected([0.02, None, 0.04]) == [0.04, None, 0.04]
    assert is_decided(0.04)
    assert not is_decided(0.05)
    assert not is_decided(None)


def test_p_in_few_characters():
    assert [p_words(each) for each in (None, 1e-12, 0.0123, 1.0)] == ["-", "<0.001", "0.012", "1.000"]
