import dataclasses
import functools

import numpy as np
import pytest
from fake_environments import Walk
from toys import random_rows

from drol.data.actions import ActionBox
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.tasks.base import Episode, Maze, mean_return, success_rate, task_from

EPISODES = [Episode(0, -5.0, 5, True), Episode(1, -10.0, 9, False), Episode(2, 0.0, 0, False, "it broke")]


@pytest.fixture(scope="module")
def dataset():
    return Dataset.from_rows(**random_rows([5, 3]))


def test_scores_are_mean_return_and_share_of_successes():
    assert mean_return(EPISODES) == -5.0
    assert success_rate(EPISODES) == pytest.approx(100 / 3)


def test_an_episode_is_recorded_without_its_positions():
    episode = Episode(3, -1.0, 1, False, positions=np.zeros((2, 2)))
    assert episode.to_dict() == {"seed": 3, "return": -1.0, "length": 1, "success": False}
    assert EPISODES[2].to_dict()["failure"] == "it broke"


def test_a_task_of_data_alone_is_scored_by_its_return(dataset):
    task = task_from(dataset, "mine")
    assert (task.name, task.train, task.validation, task.make_environment) == ("mine", dataset, None, None)
    assert (task.score(EPISODES), task.score_name, task.reward_offset) == (-5.0, "return", 0.0)
    assert (task.action_box, task.maze, task.environment_modules) == (None, None, ())


def test_everything_of_a_task_can_be_said(dataset):
    box, maze = ActionBox((-3.0, -3.0), (3.0, 3.0)), Maze(np.zeros((2, 2), bool), 1, (0, 0), (0, 0), (1, 1), 0.5)
    environment = functools.partial(Walk, "healthy")
    task = task_from(
        dataset,
        "lab/robot-1/pick_up.v2",
        environment,
        validation=dataset,
        score="success",
        reward_offset=-1.0,
        action_box=box,
        maze=maze,
        environment_modules=["numpy"],
    )
    assert task.make_environment is environment
    assert (task.validation, task.action_box, task.maze) == (dataset, box, maze)
    assert (task.score, task.score_name) == (success_rate, "success (%)")
    assert (task.reward_offset, task.environment_modules) == (-1.0, ("numpy",))


def test_a_score_may_be_a_function(dataset):
    task = task_from(dataset, "mine", Walk, score=lambda episodes: episodes[0].length, score_name="steps")
    assert (task.score(EPISODES), task.score_name) == (5, "steps")
    assert task_from(dataset, "mine", score=max, score_name=None).score_name == "score"


@pytest.mark.parametrize(
    "name", ["", "..", "a/../b", "a..b", "/a", "a/", "a//b", ".hidden", "a b", "a\n", "a/-b", "é", "x" * 201]
)
def test_names_that_lead_elsewhere_are_refused(dataset, name):
    with pytest.raises(InputError, match="is not allowed; use up to 200 letters, digits"):
        task_from(dataset, name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": {"observation": []}}, "dataset is a dict; it must be a drol.Dataset"),
        ({"validation": [1]}, "validation is a list; it must be a drol.Dataset"),
        ({"environment": Walk()}, "environment is a Walk; it must be a function that makes one"),
        ({"environment": lambda: Walk()}, "environment cannot be sent to another process .* not one inside a function"),
        ({"score": "reward"}, """score is 'reward'; it must be "return", "success" or a function"""),
        ({"action_box": ActionBox((0.0,), (1.0,))}, "action_box has 1 dimensions; the actions of dataset have 2"),
    ],
)
def test_what_does_not_fit_is_refused(dataset, changes, message):
    with pytest.raises(InputError, match=message):
        task_from(**({"dataset": dataset, "name": "mine"} | changes))


def test_held_out_data_of_another_size_are_refused(dataset):
    other = Dataset.from_rows(**random_rows([5], action_size=1))
    with pytest.raises(InputError, match=r"validation has Spec\(.*\) where dataset has Spec\(.*\); they must be equal"):
        task_from(dataset, "mine", validation=other)


def test_the_timing_of_success_is_chosen_where_there_is_a_choice(dataset):
    task = task_from(dataset, "mine", Walk)
    assert task.judged("environment") is task
    with pytest.raises(InputError, match="success_timing is 'after', but mine has a fixed one; remove this setting"):
        task.judged("after")
    other = functools.partial(Walk, "slow")
    timed = dataclasses.replace(task, success_timing="before", timed_environments={"after": other})
    assert timed.judged("before") is timed
    judged = timed.judged("after")
    assert (judged.make_environment, judged.success_timing, judged.train) == (other, "after", dataset)
