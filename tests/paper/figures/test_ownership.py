from dataclasses import replace

import pytest

from drol.errors import InputError
from drol.paper.figures.ownership import ownership_figure
from drol.paper.mechanism import MechanismRow


def row(candidates, seed, step, handover):
    return MechanismRow("maze", "drol", candidates, seed, step, handover, 5.0, 0.1, -0.2, 0.3, 0.05, 0.8)


def test_handovers_are_drawn_over_training_and_against_k_beside_chance():
    rows = [
        row(k, seed, step, None if step == 10 else 0.5 + 0.1 * seed)
        for k in (4, 16)
        for seed in (0, 1)
        for step in (10, 20, 30)
    ]
    figure = ownership_figure(rows)
    over_training, against = figure.axes[0], figure.axes[5]
    assert over_training.lines[0].get_xydata().tolist() == [[20, 0.55], [30, 0.55]]
    assert against.lines[0].get_xydata().tolist() == [[4, 0.55], [16, 0.55]]
    assert against.lines[1].get_xydata().tolist() == [[4, 0.75], [16, 0.9375]]


def test_tasks_with_one_k_are_drawn_only_at_the_end_where_others_have_several():
    rows = [row(k, 0, step, 0.5) for k in (4, 16) for step in (10, 20)]
    rows += [replace(row(16, 0, step, 0.7), task="cube") for step in (10, 20)]
    figure = ownership_figure(rows)
    assert [axes.get_ylabel() for axes in figure.axes[::5]] == ["maze", "at the end, against K"]
    assert figure.axes[5].lines[0].get_xydata().tolist() == [[16, 0.7]]
    above, below = ([text.get_text() for text in legend.get_texts()] for legend in figure.legends)
    assert (above, below) == (["K = 4", "K = 16"], ["cube", "maze", "drawn by lot"])
    assert len(ownership_figure(rows[-2:]).axes) == 10


def test_axes_reach_to_zero_and_shares_have_one_scale():
    figure = ownership_figure([row(k, 0, step, 0.5) for k in (4, 16) for step in (10, 20)])
    over_training, against = figure.axes[:5], figure.axes[5:]
    for first, second in zip(over_training[:3], against[:3], strict=True):
        assert first.get_ylim() == second.get_ylim()
    assert [axes.get_ylim()[1] for axes in over_training[:2]] == [1.0, 1.0]
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low <= 0.0 <= high


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no rows of `drol paper mechanism`"):
        ownership_figure([])
