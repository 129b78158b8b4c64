import numpy as np
import pytest
from made_results import made_group

from drol.experiments.compare import figures
from drol.experiments.compare.compare import compare
from drol.experiments.results.files import write_results


@pytest.fixture
def comparison(tmp_path):
    rows = []
    for task in ("maze", "cube"):
        for step, share in ((0, 0), (10, 1)):
            rows += made_group("fql", [10 * share, 20 * share], task=task, step=step)
            rows += made_group("drol", [25 * share, 50 * share], task=task, step=step)
    write_results(rows, tmp_path / "results.csv")
    return compare(tmp_path / "results.csv")


def test_curves_are_the_means_over_seeds_with_a_band(comparison):
    drawn = figures.learning_curves(comparison)
    assert [axes.get_title() for axes in drawn.axes] == ["maze", "cube"]
    fql, drol = drawn.axes[0].get_lines()
    np.testing.assert_allclose(fql.get_xydata(), [[0, 0], [10, 30]])
    np.testing.assert_allclose(drol.get_xydata(), [[0, 0], [10, 75]])
    assert len(drawn.axes[0].collections) == 2
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["fql", "drol"]


def test_the_probability_is_drawn_with_its_interval(comparison):
    (axes,) = figures.improvement_figure(comparison).axes
    points = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in points] == [1.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["drol"]


def test_profiles_fall_from_one_to_none(comparison):
    (axes,) = figures.profile_figure(comparison).axes
    for line, scores in zip(axes.get_lines(), ([20, 40], [50, 100]), strict=True):
        thresholds, shares = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert shares[thresholds < scores[0]].min() == 1
        assert shares[thresholds >= scores[1]].max() == 0
