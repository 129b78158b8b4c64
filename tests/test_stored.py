"""Files of every release are read by this version, and answer what they answered then."""

import json
import shutil

import jax
import numpy as np
import pytest
from stored_files import MORE_STEPS, RESUMED, STEPS, TASK, actions_of, config_of, releases

import drol
from drol import formats
from drol.checkpoints import load_tree, read_metadata, saved_steps, step_name
from drol.errors import InputError
from drol.training.compiled import over_seeds, seed_keys

RUNS = [
    pytest.param(path, id=f"{path.parents[1].name} {path.name}") for each in releases() for path in each.glob("runs/*")
]
RESUMABLE = [each for each in RUNS if each.values[0].name in RESUMED]


@pytest.fixture
def stored(monkeypatch):
    """Opens a stored run, with the dataset of its release at hand; and returns what it answered then."""

    def open_stored(path):
        release = path.parents[1]
        monkeypatch.setenv("DROL_DATA", str(release / "datasets"))
        return drol.open_run(path), json.loads((release / "answers.json").read_text())[path.name]

    return open_stored


def test_there_are_files_of_this_release():
    names = {path.name for path in releases()[-1].glob("runs/*")}
    assert names <= set(drol.ALGORITHMS)
    assert {"drol", "fql", "rebrac", "iql"} <= names


@pytest.mark.parametrize("path", RUNS)
def test_a_stored_run_is_opened_and_its_policy_acts_as_it_did(path, stored):
    run, answers = stored(path)
    assert (run.step, run.steps, run.config.task) == (STEPS, [STEPS], TASK)
    assert run.task.train.fingerprint() == answers["fingerprint"] == run.directory.read_config()["dataset_fingerprint"]
    assert [row.step for row in run.metrics if row.seed == 0] == [1, 2]
    assert {row.step for row in run.evaluations} == {0, STEPS}
    assert run.directory.bad_lines() == []
    np.testing.assert_allclose(actions_of(run), answers["actions"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", RUNS)
def test_the_checkpoint_of_a_stored_run_has_the_arrays_that_training_goes_on_from(path, stored):
    run, _ = stored(path)
    algorithm, keys, data = run.config.algorithm, seed_keys(run.config.seeds), run.task.train

    def metrics_of(state, key):
        return algorithm.update(state, data.sample(key, algorithm.batch_size), key)[1]

    def like():
        states = over_seeds(lambda key: algorithm.init(key, data.spec), keys)
        return {"states": states, "totals": over_seeds(metrics_of, states, keys)}

    folder = run.directory.checkpoints / step_name(saved_steps(run.directory.checkpoints)[-1])
    assert read_metadata(folder) == {"step": STEPS}
    tree = load_tree(folder, jax.eval_shape(like) | {"logged_step": np.int64(0)}, finite=True)
    assert int(tree["logged_step"]) == STEPS


@pytest.mark.parametrize("path", RESUMABLE)
def test_a_stored_run_goes_on_as_it_did(path, stored, tmp_path):
    _, answers = stored(path)
    run = drol.train(config_of(path.name, MORE_STEPS), shutil.copytree(path, tmp_path / "run"), quiet=True)
    assert (run.step, run.damaged) == (MORE_STEPS, False)
    np.testing.assert_allclose(actions_of(run), answers["resumed"], rtol=0, atol=1e-6)
    for row, expected in zip([row for row in run.metrics if row.step == MORE_STEPS], answers["metrics"], strict=True):
        assert row.values == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_other_formats_are_rejected_with_what_to_do(tmp_path):
    for kind, known in formats.FORMATS.items():
        formats.check_format(kind, tmp_path, known)
        with pytest.raises(
            InputError, match=r"a newer drol wrote it, so install that one \(pip install --upgrade drol\)"
        ):
            formats.check_format(kind, tmp_path, known + 1)
        for odd in (0, -1, True, "1", None, 1.0):
            with pytest.raises(InputError, match=f"format: expected {known} of a {kind}, got {odd!r}"):
                formats.check_format(kind, tmp_path, odd)
