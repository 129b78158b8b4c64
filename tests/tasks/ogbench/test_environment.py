import importlib
import os
import sys

import pytest
from fake_environments import Walk, draws_globally

from drol.errors import InputError
from drol.tasks.ogbench import SOURCE
from drol.tasks.ogbench.environment import draw_without_screen, make_ogbench
from drol.tasks.ogbench.names import find_name


def test_the_environment_of_a_task_is_made_without_its_data(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # an empty folder without datasets
    environment = SOURCE.make_environment("antmaze-large-navigate-singletask-task2-v0")()
    assert environment.reset(seed=0)[0].shape == (29,)
    environment.close()


@pytest.fixture
def no_screen(monkeypatch):
    """Simulate a Linux server; record reloads of the function instead of doing them."""
    reloaded = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib, "reload", reloaded.append)
    for name in ("DISPLAY", "MUJOCO_GL"):
        monkeypatch.setenv(name, "")  # so that the value of before is put back
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "mujoco.gl_context", "the module")
    monkeypatch.delitem(sys.modules, "mujoco.rendering.classic.gl_context", raising=False)
    return reloaded


def test_the_space_of_a_table_is_looked_at_without_a_warning():
    environment = make_ogbench("cube-single-singletask-task2-v0")
    assert environment.action_space.shape == (5,)  # warnings are errors here
    assert environment.action_space is environment.action_space


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


@pytest.mark.filterwarnings("ignore:.*precision lowered")  # of gymnasium, in the reset of a cube
@pytest.mark.parametrize("name", ["pointmaze-medium-navigate-singletask-v0", "cube-single-play-singletask-v0"])
def test_environments_share_a_process_because_their_steps_leave_the_global_generators_alone(name):
    assert find_name(name).shares_process
    environment = SOURCE.make_environment(name)()
    environment.reset(seed=0)
    assert not draws_globally(environment)
    environment.close()


def test_environments_of_images_or_with_teleports_have_a_process_each():
    assert not find_name("visual-cube-single-play-singletask-v0").shares_process
    assert not find_name("pointmaze-teleport-navigate-singletask-v0").shares_process


def test_a_draw_from_the_global_generator_is_seen():
    environment = Walk("global generator")
    environment.action_space.seed(0)
    environment.reset(seed=0)
    assert draws_globally(environment)
