import dataclasses

import pytest

import drol
from drol.algorithms import find_algorithm
from drol.presets.settings import METHODS, task_settings

MAZE, CUBE = "pointmaze-medium-navigate-singletask-task4-v0", "cube-single-play-singletask-task2-v0"
SCENE, ANTMAZE = "scene-play-singletask-task2-v0", "antmaze-large-navigate-singletask-task1-v0"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", ["short", "medium", "small", "smoke"])
def test_a_scale_keeps_what_the_paper_tuned(method, scale):
    config = drol.settings(CUBE, method, scale)
    tuned = task_settings(CUBE, method, "paper").hyperparameters
    kept = {name: value for name, value in tuned.items() if name not in ("hidden_sizes", "batch_size")}
    assert {name: getattr(config.algorithm, name) for name in kept} == kept
    assert config.success_timing == "after"
    assert config.steps < 100_000


def test_a_maze_of_a_point_has_the_settings_of_the_ant_and_rates_for_a_short_training():
    config = drol.settings(MAZE, "drol", "small")
    ant = task_settings("antmaze-large-navigate-singletask-task1-v0", "drol", "paper").hyperparameters
    assert {name: getattr(config.algorithm, name) for name in ant} == ant
    assert (config.algorithm.learning_rate, config.algorithm.hidden_sizes) == (1e-3, (128, 128, 128))
    assert (config.steps, config.standardise_observations) == (30_000, True)


def test_scale_short_differs_from_the_paper_only_in_the_number_and_interval_of_updates():
    for method in METHODS:
        paper, short = drol.settings(CUBE, method, "paper"), drol.settings(CUBE, method, "short")
        assert short.algorithm == paper.algorithm
        changed = {"steps": 40_000, "log_interval": 1_000, "evaluation_interval": 10_000, "checkpoint_interval": 10_000}
        assert dataclasses.replace(paper, **changed) == short


def test_scale_medium_has_smaller_networks_and_the_rates_of_the_paper():
    paper, medium = drol.settings(SCENE, "drol", "paper"), drol.settings(SCENE, "drol", "medium")
    assert medium.algorithm == dataclasses.replace(paper.algorithm, hidden_sizes=(256, 256, 256))
    assert (medium.steps, medium.evaluation_episodes) == (200_000, 50)


def test_scale_medium_gives_all_methods_of_a_task_one_discount():
    assert drol.settings(ANTMAZE, "drol", "paper").algorithm.discount == 0.995
    methods = [method for method in METHODS if method != "bc"]
    assert {drol.settings(ANTMAZE, method, "medium").algorithm.discount for method in methods} == {0.99}


def test_only_point_mazes_have_raised_rates():
    for task, rates in ((MAZE, (1e-3, 0.02)), (CUBE, (3e-4, 0.005))):
        algorithm = drol.settings(task, "drol", "small").algorithm
        assert (algorithm.learning_rate, algorithm.target_rate) == rates


def test_a_scale_only_names_hyperparameters_that_a_method_has():
    assert "target_rate" not in {field.name for field in dataclasses.fields(find_algorithm("bc"))}
    assert drol.settings(MAZE, "bc", "small").algorithm.hidden_sizes == (128, 128, 128)


@pytest.mark.parametrize("method", ["drol-choice", "bfn"])
def test_methods_with_one_setting_take_the_discount_of_the_task_and_the_size_of_the_scale(method):
    kind = find_algorithm(method)
    medium = drol.settings(CUBE, method, "medium")
    assert medium.algorithm == kind(hidden_sizes=(256, 256, 256), discount=0.99)
    assert (medium.steps, medium.success_timing) == (60_000, "after")
    short = drol.settings("antmaze-giant-navigate-singletask-task1-v0", method, "short")
    assert short.algorithm == kind(discount=0.995)
    assert (short.steps, short.success_timing) == (40_000, "after")
    assert drol.settings(SCENE, method).steps == 1_000_000
    assert drol.settings(MAZE, method, "small").algorithm.learning_rate == 1e-3
