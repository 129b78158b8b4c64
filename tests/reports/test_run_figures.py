import numpy as np
import pytest
from toys import TINY, random_rows, tiny_task

from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.policy import Policy
from drol.reports import run_figures as figures
from drol.runs.records import EvaluationRow, MetricsRow

pytestmark = pytest.mark.usefixtures("quick_compile")


def line_labelled(axes, label):
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return line.get_xydata().tolist()


def test_the_curve_has_every_seed_and_their_mean():
    rows = [EvaluationRow(step, seed, 10.0 * step + seed) for step in (0, 5) for seed in (1, 3)]
    figure = figures.learning_curve(rows, "success (%)")
    (axes,) = figure.axes
    assert line_labelled(axes, "seed 3") == [[0, 3], [5, 53]]
    assert line_labelled(axes, "mean") == [[0, 2], [5, 52]]
    assert [text.get_text() for text in axes.texts] == ["52"]
    assert axes.get_ylim() == (-3, 103)


def test_a_seed_that_is_not_evaluated_yet_leaves_a_gap():
    rows = [EvaluationRow(0, 1, 10.0), EvaluationRow(0, 3, 20.0), EvaluationRow(5, 1, 30.0)]
    (axes,) = figures.learning_curve(rows, "return").axes
    assert line_labelled(axes, "seed 1") == [[0, 10], [5, 30]]
    assert np.isnan(line_labelled(axes, "seed 3")[1][1])
    assert not axes.texts  # no mean to name


def test_a_panel_has_a_line_for_each_seed_that_has_the_metric():
    rows = [MetricsRow(step, seed, {"loss": 1.0 + seed}) for step in (1, 2) for seed in (0, 4)]
    rows.append(MetricsRow(3, 0, {"other": 9.0}))
    (axes,) = figures.metric_panels(rows, [("loss", "a loss")]).axes
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[1, 1], [2, 1]], [[1, 5], [2, 5]]]
    assert axes.get_title() == "a loss"


def test_another_run_is_dashed():
    rows, others = ([MetricsRow(step, 0, {"loss": value}) for step in (1, 2)] for value in (3.0, 7.0))
    (axes,) = figures.metric_panels(rows, [("loss", "a loss")], others).axes
    assert [line.get_ydata().tolist() for line in axes.lines if line.get_linestyle() == "--"] == [[7, 7]]


def test_episodes_are_coloured_by_their_outcome():
    path = np.asarray([[0.0, 0.0], [0.5, 0.5]])
    figure = figures.maze_trajectories(tiny_task().maze, [("6 updates", [path, path + 0.1], [True, False])])
    (axes,) = figure.axes
    assert axes.get_title() == "6 updates: 1 of 2 arrive"
    assert [line.get_color() for line in axes.lines[::2]] == [figures.MISSED, figures.REACHED]  # those above come last


@pytest.mark.parametrize("cells", [True, False])
def test_draws_are_those_of_the_policy_and_cells_only_where_they_are_asked_for(cells):
    task = tiny_task(train=Dataset.from_rows(**random_rows([40, 60])))
    networks = TINY.init(figures.jax.random.key(1), task.train.spec).policy
    policy = Policy(TINY, networks, Standardisation.identity(task.train.spec))
    state = np.asarray([0.1, 0.2, 0.3], np.float32)
    figure = figures.drawn_actions(task, [("0", policy), ("again", policy)], [state], ["1"], cells)
    above, below = figure.axes
    assert len(above.images) == cells
    expected = [policy.draw(state, key) for key in figures.jax.random.split(figures.jax.random.key(0), figures.DRAWS)]
    for axes in (above, below):
        data, drawn = axes.collections[0].get_offsets(), axes.collections[-1].get_offsets()
        np.testing.assert_allclose(drawn, np.asarray(expected), atol=1e-6)
        assert len(data) == figures.NEIGHBOURS


def test_neighbours_are_transitions_near_the_state():
    rows = random_rows([40, 60])
    rows["observation"] = np.repeat(np.arange(102.0)[:, None], 3, 1).astype(np.float32)
    rows["action"] = np.linspace(-0.9, 0.9, 204).reshape(102, 2).astype(np.float32)
    task = tiny_task(train=Dataset.from_rows(**rows))
    policy = Policy(TINY, TINY.init(figures.jax.random.key(0), task.train.spec).policy,
                    Standardisation.identity(task.train.spec))  # fmt: skip
    (axes,) = figures.drawn_actions(task, [("0", policy)], [np.full(3, 101.0, np.float32)], ["1"], False).axes
    shown = np.sort(axes.collections[0].get_offsets()[:, 0])
    transitions = np.flatnonzero(~rows["last"])[-figures.NEIGHBOURS :]
    np.testing.assert_allclose(shown, rows["action"][transitions, 0], atol=1e-6)
