from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_files import refusal

from drol.data.readers import fields
from drol.data.readers.columns import Column
from drol.data.readers.fields import (
    choose_fields,
    common_length,
    join_arrays,
    shorten,
    steps_in_block,
)

PATH = Path("data.file")


def chosen(available, **mapping):
    return choose_fields([Column(name) for name in available], mapping, PATH)


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (
            ["observations", "actions", "rewards", "terminals", "timeouts", "infos"],
            {
                "observation": ["observations"],
                "action": ["actions"],
                "reward": ["rewards"],
                "terminal": ["terminals"],
                "timeout": ["timeouts"],
            },
        ),
        (
            ["observation.state", "action", "episode_index", "next.done"],
            {
                "observation": ["observation.state"],
                "action": ["action"],
                "end": ["next.done"],
                "episode": ["episode_index"],
            },
        ),
        (
            ["obs_10", "obs_2", "obs_0", "action[0]"],
            {"observation": ["obs_0", "obs_2", "obs_10"], "action": ["action[0]"]},
        ),
        (
            ["obs/joints", "obs/gripper", "next_obs/gripper", "next_obs/joints", "actions"],
            {
                "observation": ["obs/joints", "obs/gripper"],
                "action": ["actions"],
                "next_observation": ["next_obs/joints", "next_obs/gripper"],
            },
        ),
        (["obs/joints", "next_obs/gripper", "actions"], {"observation": ["obs/joints"], "action": ["actions"]}),
    ],
    ids=["D4RL", "LeRobot", "numbered columns", "groups", "another group"],
)
def test_usual_names_are_found(available, expected):
    assert chosen(available) == expected


def test_names_that_are_given_come_first():
    available = ["joint_b", "joint_a", "speed", "torque", "actions", "done"]
    found = chosen(available, observation=["joint_*", "speed"], action=["torque"], end=["none"])
    assert found == {"observation": ["joint_b", "joint_a", "speed"], "action": ["torque"]}


@pytest.mark.parametrize(
    ("available", "mapping", "words"),
    [
        (
            ["obs", "state", "action"],
            {},
            "data.file: both 'obs' and 'state' may be the observation; say which with --obs",
        ),
        (
            ["a", "action"],
            {},
            "data.file: cannot tell which column is the observation; it has 'a', 'action'; name it with --observation",
        ),
        ([], {}, "cannot tell which column is the observation; it has nothing"),
        (["a", "action"], {"observation": ["b"]}, "data.file has no 'b'; it has 'a', 'action'"),
        ([str(number) for number in range(20)], {}, "'11' and 8 more"),
    ],
)
def test_what_is_not_clear_is_refused(available, mapping, words):
    assert words in refusal(chosen, available, **mapping)


def test_arrays_are_joined_along_their_last_axis():
    joined = join_arrays([np.arange(3), np.ones((3, 2))], ["a", "b"])
    np.testing.assert_array_equal(joined, [[0, 1, 1], [1, 1, 1], [2, 1, 1]])
    images = np.zeros((3, 8, 8, 1))
    assert join_arrays([images], ["image"]) is images
    message = refusal(join_arrays, [np.arange(3), images], ["a", "image"])
    assert message.startswith(
        "'image' has steps of shape [8, 8, 1], which cannot be joined with 'a'; give only this column"
    )


def test_lengths_must_be_equal():
    assert common_length(PATH, {"a": 3, "b": 3}) == 3
    assert "different numbers of steps (a 3, b 4)" in refusal(common_length, PATH, {"a": 3, "b": 4})


@given(size=st.integers(0, 10**10))
def test_a_block_is_not_larger_than_it_may_be(size):
    count = steps_in_block(size)
    assert 1 <= count <= fields.BLOCK_STEPS
    assert count == 1 or count * size <= fields.BLOCK_BYTES


def test_many_names_are_shortened():
    assert shorten(["a"]) == "a"
    assert shorten(["a", "b", "c"]) == "a, b, c"
    assert shorten(["a", "b", "c", "d"]) == "a ... d"
