import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from toys import tiny_config

from drol.algorithms import known_algorithms
from drol.cli.train import parse
from drol.planning.command import OWN_WORDS, run_commands, train_command
from drol.presets.settings import settings

ANTMAZE = "antmaze-large-navigate-singletask-v0"
MAZE = "pointmaze-medium-navigate-singletask-task1-v0"
TASKS = (MAZE, ANTMAZE, "cube-double-play-singletask-task2-v0", "pen-human-v1", "visual-cube-single-play-singletask-v0")


def parsed_back(config):
    words = shlex.split(train_command(config, Path("runs/my run")))
    assert words[:2] == ["drol", "train"]
    parsed, arguments = parse(words[2:])
    assert arguments.out == Path("runs/my run")
    return parsed


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", known_algorithms())
def test_the_command_of_a_run_makes_the_same_settings(method, task):
    for preset in ("paper", "small", "laptop"):
        config = settings(task, method, preset)
        changed = {
            field.name: not getattr(config.algorithm, field.name)
            for field in dataclasses.fields(config.algorithm)
            if isinstance(field.default, bool)
        }
        assert parsed_back(config) == config
        other = settings(task, method, preset, seeds=(3, 4), steps=77, batch_size=31, **changed)
        assert parsed_back(other) == other


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("paper", {"standardise_observations": True, "critic_hidden_sizes": (8,), "observation_scale": 4}),
        ("small", {"task": ANTMAZE, "algorithm": "fql", "hidden_sizes": (32, 16)}),
        ("laptop", {"standardise_observations": False, "dataset": "my data/file.npz", "start_from": "-odd"}),
        ("online", {"task": "antmaze-large-diverse-v2", "algorithm": "fql", "online_data": "balance"}),
    ],
)
def test_every_kind_of_setting_has_words(preset, changes):
    config = settings(preset=preset, **changes)
    assert parsed_back(config) == config


def test_the_nearest_preset_is_chosen():
    assert train_command(settings(preset="laptop"), Path("x")).endswith(
        "--algorithm drol --preset laptop --seeds 0 --out x"
    )


def test_further_evaluations_are_commands_of_their_own():
    assert run_commands(settings(), Path("a b"), (4, 16))[1:] == [
        "drol evaluate 'a b' --best-of 4",
        "drol evaluate 'a b' --best-of 16",
    ]


def test_a_run_of_a_task_that_the_command_line_does_not_know_is_said_to_be():
    assert train_command(tiny_config(), Path("x")) == OWN_WORDS


def test_to_print_a_command_needs_no_queue():
    code = "import sys, drol.planning.command; sys.exit(any(name.startswith('drol.jobs') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
