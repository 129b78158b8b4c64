import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows, tiny_task

from drol.data.dataset import Dataset
from drol.reports.task_data_figures import LINES, data_figure, describe

pytestmark = pytest.mark.usefixtures("quick_compile")


def titles(figure):
    return [axes.get_title().split(",")[0] for axes in figure.axes if axes.get_title()]


def test_a_maze_has_a_map_and_other_tasks_do_not(tmp_path):
    figure = data_figure(tiny_task())
    assert titles(figure) == ["returns", "lengths", "actions", "where the data has been"]
    assert titles(data_figure(tiny_task(maze=None))) == ["returns", "lengths", "actions"]
    figure.savefig(tmp_path / "data.svg")
    assert (tmp_path / "data.svg").stat().st_size > 1000


def test_the_histograms_hold_every_trajectory_and_the_marginals_every_action():
    lengths = [3, 9, 9, 20, 4]
    figure = data_figure(tiny_task(train=Dataset.from_rows(**random_rows(lengths)), maze=None))
    returns, length, actions = figure.axes
    assert length.get_title() == "lengths, median 9"
    for axes in (returns, length):
        assert sum(bar.get_height() for bar in axes.patches) == len(lengths)
    for stairs in actions.patches:
        assert stairs.get_data().values.sum() == pytest.approx(1)
    assert len(actions.patches) == 2


def test_many_action_dimensions_are_rows():
    train = Dataset.from_rows(**random_rows([30], action_size=8))
    _, _, actions, _ = data_figure(tiny_task(train=train, maze=None)).axes
    np.testing.assert_allclose(actions.images[0].get_array().sum(1), np.ones(8), atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4), action_size=st.integers(1, 12))
def test_any_data_is_described_and_drawn(lengths, action_size):
    rows = random_rows(lengths, action_size=action_size)
    task = tiny_task(train=Dataset.from_rows(**rows), validation=None, maze=None, environment=None)
    words = describe(task)
    assert words["transitions"] == f"{sum(lengths):,} in {len(lengths):,} trajectories"
    assert words["validation"] == "none"
    assert words["environment"].startswith("none")
    assert words["action"] == str(action_size)
    ends = int((rows["continues"][~rows["last"]] == 0).sum())
    assert words["task ends"].startswith(f"{ends:,} transitions")
    assert len(data_figure(task).axes) == (3 if action_size <= LINES else 4)  # a colour bar for the many
