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


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no rows of `drol paper mechanism`"):
        ownership_figure([])
