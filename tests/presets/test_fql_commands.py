"""FQL's settings for images and for online steps, against the numbers in its official commands."""

import pytest

from drol.errors import InputError
from drol.presets.fql_commands import ONLINE, VISUAL
from drol.presets.settings import GROUP_OF_TASK, PRESETS, TASKS, notes_on, settings, task_settings

# Environments and alphas of the commands with --frame_stack=3.
VISUAL_ALPHAS = {"cube-single": 300, "cube-double": 100, "scene": 100, "puzzle-3x3": 300, "puzzle-4x4": 300}
# Tasks whose alpha differs between the offline commands and the commands with --online_steps: offline, online.
CHANGED = {
    "humanoidmaze-medium": (30, 100),
    "antsoccer-arena": (10, 30),
    "pen-cloned": (10_000, 1_000),
    "door-cloned": (30_000, 1_000),
    "hammer-cloned": (10_000, 1_000),
    "relocate-cloned": (30_000, 10_000),
}


def alpha(config):
    return config.algorithm.to_dict()["alpha"]


@pytest.mark.parametrize("preset", PRESETS)
def test_visual_tasks_have_the_alpha_of_their_command_and_half_the_updates(preset):
    assert len(VISUAL) == len(VISUAL_ALPHAS)
    for environment, expected in VISUAL_ALPHAS.items():
        config = settings(f"visual-{environment}-play-singletask-task1-v0", "fql", preset)
        assert (alpha(config), config.steps, config.success_timing) == (expected, 500_000, "after")
        assert (config.frame_stack, config.crop_probability) == (3, 0.5)
        assert notes_on(config, preset) == ()


def test_other_methods_have_the_settings_of_visual_cube_single_only():
    task = "visual-cube-single-play-singletask-task1-v0"
    assert task_settings(task, "iql").hyperparameters == {"alpha": 1.0}
    assert task_settings(task, "ifql").hyperparameters == {"num_samples": 32}
    rebrac = {"actor_bc_weight": 1.0, "critic_bc_weight": 0.0, "mask_next_action": False}
    assert task_settings(task, "rebrac").hyperparameters == rebrac
    for method, other in (("drol", task), ("fawac", task), ("iql", task.replace("cube-single", "scene"))):
        assert task_settings(other, method).hyperparameters == {}
        assert "is not a task of the paper" in task_settings(other, method).notes[0]


def test_tasks_that_no_command_is_for_say_so():
    (note,) = task_settings("visual-scene-play-singletask-task4-v0", "fql").notes
    assert note == "fql: the official command is for task1; its settings are used here"
    (note,) = notes_on(settings("scene-play-singletask-task4-v0", "fql", "online"), "online")
    assert note == "fql: the official command is for the default task; its settings are used here"
    assert notes_on(settings("scene-play-singletask-v0", "fql", "online"), "online") == ()


def test_online_commands_differ_from_the_offline_ones_in_six_alphas_and_in_the_updates_of_d4rl():
    assert len(ONLINE) == 15
    for task in TASKS:
        group = GROUP_OF_TASK[task]
        if group not in ONLINE:
            continue
        offline, online = settings(task, "fql"), settings(task, "fql", "online")
        assert (online.steps, online.online_steps) == (1_000_000, 1_000_000)
        assert online.algorithm.to_dict() == offline.algorithm.to_dict() | {"alpha": alpha(online)}
        assert (alpha(offline), alpha(online)) == CHANGED.get(group, (alpha(offline),) * 2)


def test_where_there_is_no_command_the_preset_is_refused():
    for task, method in (
        ("scene-play-singletask-v0", "drol"),
        ("pen-human-v1", "fql"),
        ("scene-play-singletask-v0", "iql"),
    ):
        with pytest.raises(InputError, match=f"no official command trains {method} online on {task}; choose another"):
            settings(task, method, "online")
    humanoid = "humanoidmaze-medium-navigate-singletask-v0"
    assert settings(humanoid, "rebrac", "online").algorithm == settings(humanoid, "rebrac").algorithm


def test_online_steps_with_an_offline_preset_are_noted_where_there_is_another():
    (note,) = notes_on(settings("scene-play-singletask-v0", "fql", online_steps=9), "paper")
    assert note == "fql: with online steps this task has settings of its own, in the preset online"
    assert notes_on(settings("scene-play-singletask-v0", "fql"), "paper") == ()
    assert notes_on(settings("pen-human-v1", "fql", online_steps=9), "paper") == ()
