"""Rewards of hand-made states."""

import numpy as np

from drol.tasks.ogbench.rewards import ObjectGoal, PlaceGoal, rewards


def test_a_place_is_reached_within_its_radius():
    goal = PlaceGoal(column=1, place=np.asarray([1.0, 2.0]), radius=0.5)
    rows = np.asarray([[9, 1, 2], [9, 1.5, 2], [9, 1.5, 2.1], [1, 2, 9]], np.float32)
    satisfied = goal.satisfied("qpos", rows)
    np.testing.assert_array_equal(satisfied, [1, 1, 0, 0])
    reward, continues = rewards(goal, [satisfied])
    np.testing.assert_array_equal(reward, [0, 0, -1, -1])
    np.testing.assert_array_equal(continues, [0, 0, 1, 1])
    assert reward.nbytes == continues.nbytes == 4  # of a million rows they are held beside the observations


def test_every_subgoal_counts_and_all_of_them_end_the_task():
    goal = ObjectGoal(cubes=np.asarray([[0.1, 0.2, 0.3]]), buttons=np.asarray([1, 0]), slides={23: -0.16, 24: 0.2})
    assert goal.subgoals == 5
    assert goal.arrays == ("qpos", "button_states")
    rows = np.zeros((4, 25), np.float32)
    rows[:, 14:17] = [0.1, 0.2, 0.3]
    rows[:, 23], rows[:, 24] = -0.16, 0.2
    rows[1, 14] += 0.039  # still there
    rows[2, 14:16] += 0.03  # 0.042 away
    rows[3, 24] = 0.15  # the window is not open
    buttons = np.asarray([[1, 0], [1, 1], [1, 0], [0, 1]])
    reward, continues = rewards(goal, [goal.satisfied("qpos", rows), goal.satisfied("button_states", buttons)])
    np.testing.assert_array_equal(reward, [0, -1, -1, -3])
    np.testing.assert_array_equal(continues, [0, 1, 1, 1])


def test_a_puzzle_has_buttons_only():
    goal = ObjectGoal(cubes=np.empty((0, 3)), buttons=np.asarray([1, 0, 1]), slides={})
    assert (goal.subgoals, goal.arrays) == (3, ("button_states",))
