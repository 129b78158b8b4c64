import statistics

import pytest
from scipy import stats

from drol_reproduction.cells import (
    Summary,
    corrected_cells,
    difference_interval,
    emphasised,
    make_cell,
    summarised,
)
from drol_reproduction.published import Published


def test_the_interval_is_that_of_scipys_welch_test():
    ours, theirs = [52.0, 60.0, 68.0, 61.0], [44.0, 50.0, 56.0, 47.0, 53.0, 45.0, 55.0, 50.0]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    published = Published(statistics.mean(theirs), statistics.stdev(theirs))
    low, high = difference_interval(Summary(statistics.mean(ours), None, 4), statistics.stdev(ours), published)
    assert (low + 0.5, high - 0.5) == pytest.approx((expected.low, expected.high))  # half a point for rounding


@pytest.mark.parametrize(
    ("scores", "published", "verdict"),
    [
        ([95, 96, 97], Published(80, 2), "above"),
        ([60, 61, 62], Published(80, 2), "below"),
        ([78, 80, 83], Published(80, 2), "within noise"),
        ([79], Published(80, 2), "too few seeds"),
        ([60], Published(80, None), "too few seeds"),
        ([60, 61], Published(80, 2), "too few seeds"),
        ([60, 61, 62], Published(80, None), "below"),
        ([80, 80, 80], Published(80, 0), "within noise"),
        ([], Published(80, 2), "not run"),
        ([70], None, "not published"),
    ],
)
def test_verdicts(scores, published, verdict):
    assert make_cell(summarised([scores] if scores else []), published).verdict == verdict


def test_holm_counts_the_cells_that_are_tested():
    low, same = (make_cell(summarised([scores]), Published(80, 2)) for scores in ([71, 72, 75], [78, 80, 83]))
    untested = make_cell(summarised([[60, 61]]), Published(80, 2))
    first, second = corrected_cells([{"fql": low, "iql": untested}, {"fql": same, "iql": same}])
    assert low.p < 0.05
    assert first["fql"].p == pytest.approx(3 * low.p)
    assert first["iql"] == untested
    assert second["fql"].verdict == "within noise"


def test_bold_and_underlined_by_the_rule_of_the_paper():
    scores = {"bc": 20, "iql": 96, "fql": 95, "drol": 100, "drol*": 94}
    cells = emphasised({method: make_cell(summarised([[score]]), None) for method, score in scores.items()})
    assert [method for method in scores if cells[method].bold] == ["iql", "fql", "drol"]
    assert [method for method in scores if cells[method].underlined] == ["fql", "drol"]
