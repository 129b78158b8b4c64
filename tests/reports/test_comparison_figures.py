import numpy as np
import pytest
from made_results import made_group, made_result

from drol.reports import comparison_figures
from drol.reports.comparison_page import write_page
from drol.reports.figure_style import save_figure
from drol.results.compare import compare
from drol.results.result_files import write_results


@pytest.fixture
def comparison(tmp_path):
    rows = []
    for task in ("maze", "cube"):
        for step, share in ((0, 0), (10, 1)):
            rows += made_group("fql", [10 * share, 20 * share], task=task, step=step)
            rows += made_group("drol", [25 * share, 50 * share], task=task, step=step)
    write_results(rows, tmp_path / "results.csv")
    return compare(tmp_path / "results.csv")


def test_the_probability_is_drawn_with_its_interval(comparison):
    (axes,) = comparison_figures.improvement_figure(comparison).axes
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in points] == [1.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["drol"]


def test_profiles_fall_from_one_to_none(comparison):
    (axes,) = comparison_figures.profile_figure(comparison).axes
    for line, scores in zip(axes.get_lines(), ([20, 40], [50, 100]), strict=True):
        thresholds, shares = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert shares[thresholds < scores[0]].min() == 1
        assert shares[thresholds >= scores[1]].max() == 0


def test_scores_near_the_largest_float_are_drawn(tmp_path):
    scores = {"drol": (1.7e308, -1.7e308), "fql": (1.0, 2.0)}
    rows = [
        made_result("0000", method=method, seed=seed, score=score, score_name="return", mean_return=score)
        for method, each in scores.items()
        for seed, score in enumerate(each)
    ]
    write_results(rows, tmp_path / "results.csv")
    with np.errstate(over="ignore", invalid="ignore"):
        comparison = compare(tmp_path / "results.csv")
        save_figure(comparison_figures.profile_figure(comparison), tmp_path / "figure.svg")
        write_page(comparison, tmp_path / "page.html")
    assert (tmp_path / "figure.svg").stat().st_size > 1000
    assert (tmp_path / "page.html").stat().st_size > 1000
