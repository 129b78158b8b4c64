import dataclasses

import pytest

import drol
from drol.algorithms import find_algorithm
from drol.paper.presets import METHODS, task_settings

MAZE, CUBE = "pointmaze-medium-navigate-singletask-task4-v0", "cube-single-play-singletask-task2-v0"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", ["small", "smoke"])
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


def test_the_rest_has_the_same_rates_and_wider_networks():
    algorithm = drol.settings(CUBE, "drol", "small").algorithm
    assert (algorithm.learning_rate, algorithm.target_rate, algorithm.hidden_sizes) == (1e-3, 0.02, (256, 256, 256))


def test_a_scale_only_names_hyperparameters_that_a_method_has():
    assert "target_rate" not in {field.name for field in dataclasses.fields(find_algorithm("bc"))}
    assert drol.settings(MAZE, "bc", "small").algorithm.hidden_sizes == (128, 128, 128)
