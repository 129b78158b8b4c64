"""Against numbers of rliable and statsmodels; statistics.json says which versions made them."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from drol.experiments.compare import statistics

RECORDED = json.loads(Path(__file__).with_name("statistics.json").read_text())


@pytest.fixture(params=range(3))
def case(request):
    return RECORDED["rliable"][request.param]


def test_point_estimates_are_those_of_rliable(case):
    first, second = case["first"], case["second"]
    assert statistics.interquartile_mean(first) == pytest.approx(case["interquartile_mean"], abs=1e-9)
    improvement = statistics.probability_of_improvement(first, second)
    assert improvement == pytest.approx(case["probability_of_improvement"], abs=1e-9)
    profile = statistics.performance_profile(first, case["thresholds"])
    np.testing.assert_allclose(profile, case["performance_profile"], atol=1e-9)


@pytest.mark.parametrize("name", ["interquartile_mean", "probability_of_improvement"])
def test_bootstrap_intervals_are_those_of_rliable_but_for_chance(case, name):
    groups = (case["first"],) if name == "interquartile_mean" else (case["first"], case["second"])
    found = statistics.bootstrap_interval(getattr(statistics, name), *groups, resamples=2000)
    recorded = case[f"{name}_interval"]
    assert found == pytest.approx(recorded, abs=0.08 * (recorded[1] - recorded[0]))


@pytest.mark.parametrize("case", RECORDED["statsmodels"], ids=lambda case: f"{case['successes']}/{case['episodes']}")
def test_wilson_and_newcombe_are_those_of_statsmodels(case):
    own, other = (case["successes"], case["episodes"]), (case["other_successes"], case["other_episodes"])
    assert statistics.wilson_interval(*own) == pytest.approx(case["wilson"], abs=1e-9)
    assert statistics.newcombe_interval(*own, *other) == pytest.approx(case["newcombe"], abs=1e-9)


def test_newcombe_is_what_he_published():
    assert statistics.newcombe_interval(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_tasks_may_have_different_numbers_of_seeds():
    assert statistics.probability_of_improvement([[1, 2, 3], [5]], [[2], [4, 6]]) == pytest.approx(0.5)
    np.testing.assert_allclose(statistics.performance_profile([[0, 0, 0], [100]], [50]), [0.5])


def test_deviation_of_one_seed_is_unknown():
    assert statistics.mean_and_deviation([90, 100]) == pytest.approx((95, 7.0710678))
    mean, deviation = statistics.mean_and_deviation([90])
    assert mean == 90
    assert np.isnan(deviation)


def test_welch_is_that_of_scipy():
    ours, theirs = [1.0, 2.0, 3.0], [2.0, 3.0, 5.0, 9.0]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert statistics.welch_interval(ours, theirs) == pytest.approx(tuple(expected))
    assert statistics.welch_interval([5, 5], [3, 3]) == (2, 2)


def test_paired_interval_is_the_adjusted_one_of_the_table_of_pairs():
    """Agresti and Min: with half an episode in each cell, (b - c) / n and its normal interval."""
    both, first_only, second_only, neither = 20.5, 9.5, 3.5, 21.5
    total = both + first_only + second_only + neither
    difference = (first_only - second_only) / total
    half = 1.959964 * np.sqrt(first_only + second_only - (first_only - second_only) ** 2 / total) / total
    found = statistics.paired_interval([1] * 9 + [-1] * 3 + [0] * 41)
    assert found == pytest.approx((difference - half, difference + half), abs=1e-6)


def test_paired_episodes_without_a_difference_are_not_known_exactly():
    low, high = statistics.paired_interval([0] * 50)
    assert low == pytest.approx(-high)
    assert 0.02 < high < 0.06


def test_what_is_needed_finds_the_difference_four_times_in_five():
    count = statistics.seeds_needed(10, 10, 5)
    generator = np.random.default_rng(0)
    draws = generator.normal(0, 10, (2, 2000, count))
    found = np.abs(5 + draws[0].mean(1) - draws[1].mean(1)) > 1.96 * np.sqrt(2 * 100 / count)
    assert found.mean() == pytest.approx(0.8, abs=0.03)
    episodes = statistics.episodes_needed(0.5, 0.55, 0.05)
    wins = generator.binomial(episodes, 0.55, 2000), generator.binomial(episodes, 0.5, 2000)
    gaps = (wins[0] - wins[1]) / episodes
    assert (np.abs(gaps) > 1.96 * np.sqrt(0.4975 / episodes)).mean() == pytest.approx(0.8, abs=0.03)


def test_few_seeds_are_not_promised_too_much():
    """By the normal approximation two and four seeds would do; Welch's test then finds it in 0.3 and 0.6 of cases."""
    generator = np.random.default_rng(0)
    for deviation in (5, 10):
        count = statistics.seeds_needed(deviation, deviation, 20)
        draws = generator.normal([[[20.0]], [[0.0]]], deviation, (2, 4000, count))
        found = stats.ttest_ind(*draws, axis=1, equal_var=False).pvalue < 0.05
        assert 0.78 < found.mean() < 0.95
    assert statistics.seeds_needed(0, 0, 5) == 2


def test_the_bootstrap_is_seeded_and_resamples_within_tasks():
    def interval(seed=0):
        tasks = [[0.0, 10.0, 20.0], [100.0, 100.0]]
        return statistics.bootstrap_interval(lambda group: np.mean(group[1]) + group[0][0], tasks, seed=seed)

    assert interval() == interval() == (100, 120)  # the second task never varies


def test_the_bootstrap_interval_of_a_mean_is_that_of_rliable_but_for_chance():
    case = RECORDED["rliable"][0]  # one task
    low, high = case["mean_interval"]
    found = statistics.bootstrap_mean_interval(case["first"][0])
    assert found == pytest.approx((low, high), abs=0.08 * (high - low))
