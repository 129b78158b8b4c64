"""A run that starts from the networks of another."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from run_folders import Killed, assert_same_run, files
from toys import TINY, random_rows, tiny_config, tiny_task

from drol.algorithms import BC
from drol.checkpoints import ARRAYS, step_name
from drol.data.actions import ActionBox
from drol.data.dataset import Dataset
from drol.data.dimensions import Dimensions
from drol.errors import InputError
from drol.runs.directory import RunDirectory
from drol.training.train import train
from drol.training.trainer import Trainer


def run(path, task=None, **changes):
    return train(tiny_config(**changes), path, task or tiny_task(environment=None), quiet=True)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "run"
    run(path)
    return path


def states(path, step):
    arrays = safetensors.numpy.load_file(path / "checkpoints" / step_name(step) / ARRAYS)
    return {name: array for name, array in arrays.items() if name.startswith("states")}


def test_every_network_and_optimiser_is_that_of_the_other_run(other, tmp_path):
    before = files(other)
    changed = dataclasses.replace(TINY, bc_weight=0.1)
    run(tmp_path / "new", algorithm=changed, start_from=str(other), steps=3)
    found, expected = states(tmp_path / "new", 0), states(other, 12)
    assert any("optimiser" in name for name in found)
    assert any("target_critic" in name for name in found)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert any((states(tmp_path / "new", 3)[name] != array).any() for name, array in expected.items())
    assert RunDirectory(tmp_path / "new").read_config()["run"]["start_from"] == str(other)
    assert files(other) == before


def test_a_saved_checkpoint_and_other_seeds_can_be_chosen(other, tmp_path):
    checkpoint = other / "checkpoints" / step_name(9)
    run(tmp_path / "one", start_from=str(checkpoint), seeds=(7,), steps=3)
    for name, array in states(tmp_path / "one", 0).items():
        np.testing.assert_array_equal(array, states(other, 9)[name][1:])
    run(tmp_path / "all", start_from=str(tmp_path / "one"), seeds=(3, 4), steps=3)  # of one seed, so all start from it
    for name, array in states(tmp_path / "all", 0).items():
        np.testing.assert_array_equal(array, states(tmp_path / "one", 3)[name][[0, 0]])


def test_a_run_that_was_cut_goes_on_without_the_other(other, tmp_path, monkeypatch):
    copy = shutil.copytree(other, tmp_path / "other")
    run(tmp_path / "whole", start_from=str(copy))
    advance = Trainer.advance

    def kill(trainer, boundary):
        if trainer.step >= moment:
            raise Killed
        advance(trainer, boundary)

    for moment in (0, 4):
        cut = tmp_path / f"cut at {moment}"
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "advance", kill)
            with pytest.raises(Killed):
                run(cut, start_from=str(copy))
        with monkeypatch.context() as patch:
            patch.setattr("drol.training.trainer.states_of_another_run", None)
            run(cut, start_from=str(copy))
        assert_same_run(cut, tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_from": "nowhere"}, "nowhere is not a run folder"),
        ({"algorithm": BC(hidden_sizes=(16, 16))}, "cannot start bc from .*, a run of drol; both must be one"),
        (
            {"algorithm": dataclasses.replace(TINY, hidden_sizes=(8, 8))},
            r"cannot start from .*; the checkpoint of step 12 does not fit: states/.* is float32\[2, .* is expected",
        ),
        ({"seeds": (0, 1)}, "has seeds 0 7 and not 1; choose seeds of these"),
        ({"standardise_observations": True}, "the observations of .* have another standardisation"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(other, tmp_path, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        run(tmp_path / "new", **({"start_from": str(other)} | changes))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new" / "config.json").exists()


def test_other_shapes_and_boxes_are_refused(other, tmp_path):
    wide = Dataset.from_rows(**random_rows([20], observation_size=5))
    with pytest.raises(InputError, match=r"have shape \[3\]; those of toy have \[5\]"):
        run(tmp_path / "wide", tiny_task(None, train=wide, validation=None), start_from=str(other))
    boxed = tiny_task(None, action_box=ActionBox((-2.0, -2.0), (2.0, 2.0)))
    with pytest.raises(InputError, match="are scaled from another box"):
        run(tmp_path / "boxed", boxed, start_from=str(other))


def test_another_order_of_numbers_is_refused(tmp_path):
    names = Dimensions(("x", "y", "z"))
    first = tiny_task(None, observation_dimensions=names)
    run(tmp_path / "first", first, steps=3)
    config = json.loads((tmp_path / "first" / "config.json").read_text())
    assert config["dimensions"] == {"observation": names.to_dict(), "action": None}
    other = tiny_task(None, observation_dimensions=Dimensions(("y", "x", "z")))
    with pytest.raises(InputError, match=r"the observation of .* is x, y, z; that of toy is y, x, z"):
        run(tmp_path / "second", other, start_from=str(tmp_path / "first"), steps=3)
    assert run(tmp_path / "third", first, start_from=str(tmp_path / "first"), steps=3).step == 3


def test_the_same_standardisation_is_accepted(tmp_path):
    run(tmp_path / "first", standardise_observations=True, observation_scale=2.0, steps=3)
    options = {"standardise_observations": True, "start_from": str(tmp_path / "first"), "steps": 3}
    assert run(tmp_path / "second", observation_scale=2.0, **options).step == 3
    with pytest.raises(InputError, match="another standardisation"):
        run(tmp_path / "third", observation_scale=1.0, **options)
