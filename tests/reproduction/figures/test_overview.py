from pathlib import Path

import numpy as np
import pytest

from drol_reproduction.documents import fill_blocks
from drol_reproduction.figures.overview import (
    ALPHA,
    PEAK,
    RATE,
    SUPPORT,
    compute_overview,
    overview_figure,
    slope,
    value,
)


@pytest.fixture(scope="module")
def overview():
    return compute_overview()


def test_the_critic_has_the_slope_that_is_worked_out_by_hand():
    point = PEAK + np.asarray([0.3, -0.4])
    np.testing.assert_allclose(slope(point), np.asarray([-0.3, 0.4]) / np.sqrt(0.29), rtol=1e-5)
    assert value(PEAK) == pytest.approx(-0.2)


def test_both_losses_start_from_the_same_samples_inside_the_support(overview):
    np.testing.assert_array_equal(overview.tied[0], overview.routed[0])
    for points in (overview.data, overview.tied[0]):
        assert (np.square(points / SUPPORT).sum(-1) <= 1 + 1e-6).all()
    np.testing.assert_array_equal(overview.data[overview.target], overview.teachers[overview.selected])


def test_the_first_steps_are_those_of_the_printed_gradients(overview):
    start, selected = overview.routed[0], overview.selected
    push = ALPHA * slope(start[selected])
    tied = 2 * (overview.teachers[selected] - start[selected]) + push
    np.testing.assert_allclose(overview.tied[1, selected] - start[selected], RATE * tied, atol=1e-6)
    won = np.square(overview.data[:, None] - start).sum(-1).argmin(1) == selected
    routed = 2 * (overview.data[won].mean(0) - start[selected]) + push
    share = won.mean() * len(start)  # a sample moves in proportion to the data that it wins
    np.testing.assert_allclose(overview.routed[1, selected] - start[selected], RATE * share * routed, atol=1e-6)


def test_a_tied_sample_rests_by_its_teacher_and_a_routed_one_climbs_on_while_a_neighbour_serves_its_action(overview):
    selected, tied, routed = overview.selected, overview.tied[-1], overview.routed[-1]
    rest = tied[selected] - overview.teachers[selected]
    np.testing.assert_allclose(rest, ALPHA / 2 * slope(tied[selected]), atol=1e-4)  # where push and pull cancel
    assert value(routed[selected]) > value(tied[selected]) + 0.2 > value(overview.tied[0, selected]) + 0.2
    assert 0 < overview.handoff < 80
    assert overview.owner(0) == selected != overview.owner(-1)
    assert overview.distance(routed) < overview.distance(tied)


def test_the_caption_and_the_panels_say_the_same_numbers(overview):
    figure = overview_figure(overview)
    left, right = figure.axes
    assert "→ -0.97" in left.get_xlabel()
    assert "After, tied: -0.97" in overview.caption()
    assert "→ -0.68" in right.get_xlabel()
    assert "After, routed: -0.68" in overview.caption()
    assert "step 10" in overview.caption()


def test_the_document_shows_the_caption_of_the_figure_that_is_computed(overview):
    text = (Path(__file__).parents[3] / "docs" / "algorithms.md").read_text()
    assert text.count("<!-- made by: drol paper figure 1 (caption) -->") == 1
    assert fill_blocks(text, "drol paper figure 1", {"caption": overview.caption()}) == text
