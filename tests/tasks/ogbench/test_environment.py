import importlib
import os
import sys

import numpy as np
import pytest
from fake_environments import Stripes, Walk

from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.tasks.ogbench.environment import draw_without_screen, stack_frames


def play(environment, seed):
    """All observations of an episode."""
    observation, _ = environment.reset(seed=seed)
    seen, done = [observation], False
    while not done:
        observation, _, _, done, _ = environment.step(np.ones(2))
        seen.append(observation)
    return np.stack(seen)


@pytest.mark.parametrize("count", [2, 3, 9])
def test_an_environment_shows_what_the_dataset_stacks(count):
    seeds = (3, 4)
    frames = [play(Stripes(), seed) for seed in seeds]
    rows = sum(map(len, frames))
    dataset = Dataset.from_rows(
        observation=np.concatenate(frames),
        action=np.zeros((rows, 2)),
        reward=np.zeros(rows),
        continues=np.ones(rows),
        last=np.concatenate([np.arange(len(each)) == len(each) - 1 for each in frames]),
        frame_stack=count,
    )
    taken = dataset.take(np.arange(dataset.size))
    environment = stack_frames(Stripes(), count)  # one for both episodes, so that the first leaves nothing behind
    seen = [play(environment, seed) for seed in seeds]
    assert seen[0].dtype == np.uint8
    assert seen[0].shape[1:] == dataset.spec.observation_shape
    np.testing.assert_array_equal(taken.observation, np.concatenate([each[:-1] for each in seen]))
    np.testing.assert_array_equal(taken.next_observation, np.concatenate([each[1:] for each in seen]))


def test_a_stack_of_one_is_the_environment_itself():
    environment = Walk()
    assert stack_frames(environment, 1) is environment


def test_all_else_is_that_of_the_environment():
    inner = Stripes(length=3)
    environment = stack_frames(inner, 2)
    assert environment.action_space is inner.action_space
    environment.reset(seed=0)
    answers = [environment.step(np.asarray([inner.direction, 0]))[1:] for _ in range(3)]
    assert answers == [(1.0, False, False, {"success": True})] * 2 + [(1.0, False, True, {"success": True})]
    with pytest.raises(AttributeError, match="no_such_thing"):
        environment.no_such_thing  # noqa: B018


@pytest.fixture
def no_screen(monkeypatch):
    """As on a Linux server; what the function reloads is noted, not done."""
    reloaded = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib, "reload", reloaded.append)
    for name in ("DISPLAY", "MUJOCO_GL"):
        monkeypatch.setenv(name, "")  # so that the value of before is put back
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "mujoco.gl_context", "the module")
    monkeypatch.delitem(sys.modules, "mujoco.rendering.classic.gl_context", raising=False)
    return reloaded


def test_images_are_drawn_without_a_screen(no_screen):
    draw_without_screen()
    assert os.environ["MUJOCO_GL"] == "egl"
    assert no_screen == ["the module"]


@pytest.mark.parametrize("name", ["DISPLAY", "MUJOCO_GL"])
def test_a_screen_or_a_choice_of_the_user_is_respected(no_screen, monkeypatch, name):
    monkeypatch.setenv(name, ":0")
    draw_without_screen()
    assert os.environ.get("MUJOCO_GL") == (":0" if name == "MUJOCO_GL" else None)
    assert no_screen == []


def test_a_machine_that_cannot_draw_is_told_what_to_install(no_screen, monkeypatch):
    def fail(_):
        raise AttributeError("'NoneType' object has no attribute 'eglQueryString'")

    monkeypatch.setattr(importlib, "reload", fail)
    with pytest.raises(InputError, match="install libegl1 or set MUJOCO_GL to osmesa or glfw"):
        draw_without_screen()
    assert "MUJOCO_GL" not in os.environ
    assert no_screen == []
