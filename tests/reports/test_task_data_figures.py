import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from toys import random_rows, tiny_task

from drol.data.dataset import Dataset
from drol.data.trajectories import trajectories_of
from drol.reports.task_data_figures import SHOWN_PATHS, describe, draw_histogram, draw_visits


@pytest.mark.parametrize("values", [[3, 9, 9, 20, 4], [7, 7, 7]])
def test_a_histogram_holds_every_trajectory(values):
    axes = Figure().subplots()
    axes.set_title("lengths")
    draw_histogram(axes, np.asarray(values), "transitions")
    assert sum(bar.get_height() for bar in axes.patches) == len(values)
    assert axes.get_title() == f"lengths, median {np.median(values):g}"


def test_a_maze_has_its_walls_the_visits_and_some_paths():
    task = tiny_task()
    axes = Figure().subplots()
    train = trajectories_of(task.train)
    draw_visits(axes, task, train)
    assert len(axes.patches) == task.maze.walls.sum() + 1  # the walls and the goal
    assert len(axes.images) == 1
    assert len(axes.lines) == min(SHOWN_PATHS, len(train.first)) + 1


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4), action_size=st.integers(1, 12))
def test_any_data_is_described(lengths, action_size):
    rows = random_rows(lengths, action_size=action_size)
    task = tiny_task(train=Dataset.from_rows(**rows), validation=None, maze=None, environment=None)
    words = describe(task)
    assert words["transitions"] == f"{sum(lengths):,} in {len(lengths):,} trajectories"
    assert words["validation"] == "none"
    assert words["environment"].startswith("none")
    assert words["action"] == str(action_size)
    ends = int((rows["continues"][~rows["last"]] == 0).sum())
    assert words["task ends"].startswith(f"{ends:,} transitions")
