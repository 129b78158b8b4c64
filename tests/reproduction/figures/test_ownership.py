import pytest
from made_mechanism import made_row, made_rows

from drol.errors import InputError
from drol_reproduction.figures.ownership import ownership_figure


def test_lag_curves_have_a_line_for_each_seed_and_a_thick_one_for_their_mean():
    figure = ownership_figure(made_rows())
    changed = figure.axes[0]
    thick = [line.get_xydata().tolist() for line in changed.lines if line.get_linewidth() > 1]
    assert thick == [[[100, pytest.approx(0.31)], [1000, pytest.approx(0.91)]], [[100, 0.23], [1000, 0.28]],
                     [[100, 0.19], [1000, 0.2]]]  # fmt: skip
    assert len(changed.lines) == 3 + 2 * 2  # seeds are drawn where there are several
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["DROL(16)", "DROL(16), without Q", "FQL"]


def test_events_and_spread_are_drawn():
    figure = ownership_figure(made_rows())
    rose, nearest, spread = figure.axes[2], figure.axes[3], figure.axes[4]
    assert next(line for line in rose.lines if line.get_linewidth() > 1.5).get_ydata() == pytest.approx(
        [0.62, 0.51, 0.5]
    )
    dashed = [line for line in nearest.lines if line.get_linestyle() == "--" and line.get_linewidth() > 1]
    assert dashed[0].get_ydata().tolist() == [0.41, 0.41]
    assert [bar.get_width() for bar in spread.patches] == pytest.approx([0.8] * 3)


def test_each_task_and_size_of_networks_has_its_own_panels():
    small = made_row(settings={"hidden_sizes": [256, 256, 256]}, rose_changed=None, latent_distance=None)
    figure = ownership_figure([*made_rows(), small])
    assert [part.get_suptitle() for part in figure.subfigs] == ["cube-single-task2, 3x256", "cube-single-task2, 4x512"]
    assert len(figure.axes) == 12


def test_no_rows_are_rejected():
    with pytest.raises(InputError, match="no rows to draw"):
        ownership_figure([])
