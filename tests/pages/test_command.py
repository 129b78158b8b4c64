import shlex
from pathlib import Path

import pytest
from toys import tiny_config

from drol.cli.train import parse
from drol.pages.command import OWN_WORDS, train_command
from drol.paper.presets import settings

ANTMAZE = "antmaze-large-navigate-singletask-v0"


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("laptop", {}),
        ("paper", {"seeds": (3, 4), "bc_weight": 0.3, "standardise_observations": True}),
        ("small", {"task": ANTMAZE, "algorithm": "fql", "hidden_sizes": (32, 16)}),
        ("laptop", {"standardise_observations": False, "dataset": "my data/file.npz"}),
    ],
)
def test_the_command_of_a_run_makes_the_same_settings(preset, changes):
    config = settings(preset=preset, **changes)
    words = shlex.split(train_command(config, Path("runs/my run")))
    assert words[:2] == ["drol", "train"]
    parsed, arguments = parse(words[2:])
    assert parsed == config
    assert arguments.out == Path("runs/my run")


def test_the_nearest_preset_is_chosen():
    assert train_command(settings(preset="laptop"), Path("x")).endswith(
        "--algorithm drol --preset laptop --seeds 0 --out x"
    )


def test_a_run_of_a_task_that_the_command_line_does_not_know_is_said_to_be():
    assert train_command(tiny_config(), Path("x")) == OWN_WORDS
