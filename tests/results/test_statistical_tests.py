"""Against numbers of rliable and statsmodels; statistical_tests.json says which versions made them."""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from drol.results import statistical_tests

RECORDED = json.loads(Path(__file__).with_name("statistics.json").read_text())


@pytest.fixture(params=range(3))
def case(request):
    return RECORDED["rliable"][request.param]


def test_point_estimates_are_those_of_rliable(case):
    first, second = case["first"], case["second"]
    assert statistical_tests.interquartile_mean(first) == pytest.approx(case["interquartile_mean"], abs=1e-9)
    improvement = statistical_tests.probability_of_improvement(first, second)
    assert improvement == pytest.approx(case["probability_of_improvement"], abs=1e-9)
    profile = statistical_tests.performance_profile(first, case["thresholds"])
    np.testing.assert_allclose(profile, case["performance_profile"], atol=1e-9)


@pytest.mark.parametrize("name", ["interquartile_mean", "probability_of_improvement"])
def test_bootstrap_intervals_are_those_of_rliable_but_for_chance(case, name):
    groups = (case["first"],) if name == "interquartile_mean" else (case["first"], case["second"])
    found = statistical_tests.bootstrap_interval(getattr(statistical_tests, name), *groups, resamples=2000)
    recorded = case[f"{name}_interval"]
    assert found == pytest.approx(recorded, abs=0.08 * (recorded[1] - recorded[0]))


@pytest.mark.parametrize("case", RECORDED["statsmodels"], ids=lambda case: f"{case['successes']}/{case['episodes']}")
def test_wilson_and_newcombe_are_those_of_statsmodels(case):
    own, other = (case["successes"], case["episodes"]), (case["other_successes"], case["other_episodes"])
    assert statistical_tests.wilson_interval(*own) == pytest.approx(case["wilson"], abs=1e-9)
    assert statistical_tests.newcombe_interval(*own, *other) == pytest.approx(case["newcombe"], abs=1e-9)


def test_newcombe_is_what_he_published():
    assert statistical_tests.newcombe_interval(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_tasks_may_have_different_numbers_of_seeds():
    assert statistical_tests.probability_of_improvement([[1, 2, 3], [5]], [[2], [4, 6]]) == pytest.approx(0.5)
    np.testing.assert_allclose(statistical_tests.performance_profile([[0, 0, 0], [100]], [50]), [0.5])


def test_deviation_of_one_seed_is_unknown():
    assert statistical_tests.mean_and_deviation([90, 100]) == pytest.approx((95, 7.0710678))
    mean, deviation = statistical_tests.mean_and_deviation([90])
    assert mean == 90
    assert np.isnan(deviation)


def test_welch_is_that_of_scipy():
    ours, theirs = [1.0, 2.0, 3.0], [2.0, 3.0, 5.0, 9.0]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert statistical_tests.welch_interval(ours, theirs) == pytest.approx(tuple(expected))
    assert statistical_tests.welch_interval([5, 5], [3, 3]) == (2, 2)


def test_paired_interval_is_the_adjusted_one_of_the_table_of_pairs():
    """Agresti and Min: with half an episode in each cell, (b - c) / n and its normal interval."""
    both, first_only, second_only, neither = 20.5, 9.5, 3.5, 21.5
    total = both + first_only + second_only + neither
    difference = (first_only - second_only) / total
    half = 1.959964 * np.sqrt(first_only + second_only - (first_only - second_only) ** 2 / total) / total
    found = statistical_tests.paired_interval([1] * 9 + [-1] * 3 + [0] * 41)
    assert found == pytest.approx((difference - half, difference + half), abs=1e-6)


def test_paired_episodes_without_a_difference_are_not_known_exactly():
    low, high = statistical_tests.paired_interval([0] * 50)
    assert low == pytest.approx(-high)
    assert 0.02 < high < 0.06


def found(difference, deviation, seeds, other_seeds, equal_var=False, repeats=4000):
    """How often Welch's test, or the one for equal variances, finds a true difference."""
    generator = np.random.default_rng(0)
    ours = generator.normal(difference, deviation, (repeats, seeds))
    theirs = generator.normal(0, deviation, (repeats, other_seeds))
    return np.mean(stats.ttest_ind(ours, theirs, axis=1, equal_var=equal_var).pvalue < 0.05)


@pytest.mark.parametrize(("seeds", "other_seeds"), [(3, 5), (8, 8), (3, 3)])
def test_the_detectable_difference_is_found_four_times_in_five(seeds, other_seeds):
    detectable = statistical_tests.detectable_difference(10, seeds, other_seeds)
    assert found(detectable, 10, seeds, other_seeds, equal_var=True) == pytest.approx(0.8, abs=0.02)
    assert 0.66 < found(detectable, 10, seeds, other_seeds) < 0.82  # Welch's test of three seeds finds less
    assert statistical_tests.detectable_difference(20, seeds, other_seeds) == pytest.approx(2 * detectable)


@pytest.mark.parametrize("deviation", [5, 10, 30])
def test_the_seeds_that_are_needed_find_the_difference_four_times_in_five(deviation):
    count = statistical_tests.seeds_needed(deviation, 20)
    assert 0.78 < found(20, deviation, count, count) < 0.95
    assert statistical_tests.detectable_difference(deviation, count, count) <= 20
    assert statistical_tests.detectable_difference(deviation, count - 1, count - 1) > 20
    assert (statistical_tests.seeds_needed(0, 5), statistical_tests.seeds_needed(0, 5, least=3)) == (2, 3)


def test_the_pooled_deviation_weighs_groups_by_their_seeds():
    assert statistical_tests.pooled_deviation([0, 10], [4, 4, 4, 4]) == pytest.approx(np.sqrt(50 / 4))


def test_holm_is_that_of_the_textbook():
    assert statistical_tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistical_tests.holm([0.02] * 9) == pytest.approx(
        [0.18] * 9
    )  # four verdicts of nine comparisons were made so
    assert statistical_tests.holm([0.9, 0.8]) == [1, 1]
    assert statistical_tests.holm([]) == []


def test_the_p_value_of_an_interval_is_that_of_its_test():
    ours, theirs = [1.0, 2.0, 3.0], [2.0, 3.0, 5.0, 9.0]
    found = statistical_tests.p_value(lambda confidence: statistical_tests.welch_interval(ours, theirs, confidence))
    assert found == pytest.approx(stats.ttest_ind(ours, theirs, equal_var=False).pvalue, rel=1e-6)
    same = statistical_tests.p_value(lambda confidence: statistical_tests.welch_interval([1, 1], [1, 1], confidence))
    apart = statistical_tests.p_value(lambda confidence: statistical_tests.welch_interval([1, 1], [2, 2], confidence))
    assert (same, apart) == (1, 1e-12)


def test_the_interval_of_a_mean_is_students():
    scores = [10.0, 40.0, 30.0]
    expected = stats.ttest_1samp(scores, 0).confidence_interval()
    assert statistical_tests.mean_interval(scores) == pytest.approx(tuple(expected))


def test_rows_of_a_cluster_are_drawn_together():
    """Two clusters of equal rows: a resample has one of them twice, or both; single rows would give more values."""
    found = []
    statistical_tests.cluster_bootstrap_interval(
        lambda rows: found.append(float(rows.mean())) or 0.0, [[[0.0]] * 4, [[1.0]] * 4]
    )
    assert {*found} == {0.0, 0.5, 1.0}
    wide = statistical_tests.cluster_bootstrap_interval(lambda rows: float(rows.mean()), [[[0.0]] * 4, [[1.0]] * 4])
    assert wide == (0, 1)
    assert statistical_tests.cluster_bootstrap_interval(
        lambda rows: None if rows.mean() == 1 else 0.5, [[[1]], [[0]]]
    ) == (
        0.5,
        0.5,
    )


def test_the_bootstrap_is_seeded_and_resamples_within_tasks():
    def interval(seed=0):
        tasks = [[0.0, 10.0, 20.0], [100.0, 100.0]]
        return statistical_tests.bootstrap_interval(lambda group: np.mean(group[1]) + group[0][0], tasks, seed=seed)

    assert interval() == interval() == (100, 120)  # the second task never varies


@pytest.mark.parametrize(
    ("metric", "sign", "words"),
    [
        ("outside_support", -1, "| share of actions outside the support | +0.68 (-0.32 to +0.90) |"),
        ("value", 1, "| fitted-Q evaluation | +0.30 (-0.55 to +0.90) |"),
    ],
)
def test_the_intervals_of_the_study_of_offline_metrics_resample_runs(metric, sign, words):
    root = Path(__file__).parents[2]
    runs = {}
    for row in csv.DictReader((root / "results" / "offline_ranking.csv").read_text().splitlines()):
        if "task1" in row["task"]:
            runs.setdefault(row["run"], []).append((sign * float(row[metric]), float(row["recorded_score"])))

    def order(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.ConstantInputWarning)
            found: Any = stats.spearmanr(rows)
        return None if np.isnan(found.statistic) else float(found.statistic)

    low, high = statistical_tests.cluster_bootstrap_interval(order, list(runs.values()))
    name, _, _ = words.strip("| ").partition(" | ")
    center: Any = order(np.concatenate([np.asarray(each) for each in runs.values()]))
    assert words == f"| {name} | {center:+.2f} ({low:+.2f} to {high:+.2f}) |"
    assert words in (root / "docs" / "offline-evaluation.md").read_text()
