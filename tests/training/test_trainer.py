import dataclasses
import errno
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors.numpy
from fake_environments import Walk
from run_folders import Killed, assert_same_run, comparable, files
from toys import TESTS, TINY, random_rows, tiny_config, tiny_task

from drol import checkpoints
from drol.checkpoints import ARRAYS, saved_steps, step_name
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.evaluation.episodes import EnvironmentFailed
from drol.policy import Policy
from drol.runs.directory import RunDirectory
from drol.training import trainer
from drol.training.train import train
from drol.training.trainer import Trainer


def run(path, task=None, quiet=True, **changes):
    return train(tiny_config(**changes), path, task or tiny_task(), processes=2, quiet=quiet)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Train an uninterrupted run; return it and its outcome."""
    path = tmp_path_factory.mktemp("whole") / "run"
    outcome = run(path)
    assert outcome.step == 12
    return path, outcome


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of that run to do something to."""
    return Path(shutil.copytree(whole[0], tmp_path / "copy"))


def steps(rows):
    return [(row.step, row.seed) for row in rows]


def test_a_run_leaves_rows_checkpoints_policies_and_trajectories(whole):
    path, outcome = whole
    directory = RunDirectory(path)
    assert steps(directory.read_metrics()) == [(step, seed) for step in (4, 8, 12) for seed in (0, 7)]
    assert steps(directory.read_evaluations()) == [(step, seed) for step in (0, 6, 12) for seed in (0, 7)]
    assert saved_steps(directory.checkpoints) == [9, 12]
    assert saved_steps(directory.policies) == [0, 6, 12]
    names = {each.name for each in (path / "trajectories").iterdir()}
    assert names == {f"{step_name(step)}-seed{seed}.npz" for step in (0, 6, 12) for seed in (0, 7)}
    assert {each.name for each in path.iterdir()} == {
        ".lock",
        "config.json",
        "metrics.jsonl",
        "evaluations.jsonl",
        "checkpoints",
        "policies",
        "trajectories",
    }
    config = directory.read_config()
    assert config["run"] == tiny_config().to_dict()
    assert config["dataset_fingerprint"] == tiny_task().train.fingerprint()
    assert config["circumstances"]["jax"] == jax.__version__
    assert outcome.scores == [row.score for row in directory.read_evaluations()[-2:]]
    assert outcome.stopped_by is None


def test_the_rows_hold_numbers_of_every_kind(whole):
    directory = RunDirectory(whole[0])
    row = directory.read_metrics()[0]
    assert row.values.keys() > {"actor_loss", "critic_loss", "diagnostics/candidate_divergence"}
    assert all(np.isfinite(value) for value in row.values.values())
    evaluation = directory.read_evaluations()[0]
    assert [episode.seed for episode in evaluation.episodes] == [0, 1, 2]
    assert evaluation.score == pytest.approx(100 * np.mean([episode.success for episode in evaluation.episodes]))
    assert evaluation.validation["candidate_divergence"] > 0
    trajectories = directory.read_trajectories(0, 0)
    assert [len(each) for each in trajectories] == [1 + episode.length for episode in evaluation.episodes]


def test_the_metrics_of_a_row_are_means_over_the_updates_since_the_last(whole, tmp_path):
    run(tmp_path / "run", log_interval=1, steps=8)
    each = [row.values for row in RunDirectory(tmp_path / "run").read_metrics() if row.seed == 7]
    row = next(row for row in RunDirectory(whole[0]).read_metrics() if (row.step, row.seed) == (8, 7))
    for name in ("actor_loss", "critic_loss", "data_q"):
        assert row.values[name] == pytest.approx(np.mean([single[name] for single in each[4:8]]), rel=1e-5)


def test_the_policies_are_those_of_the_checkpoints_and_act(whole):
    path, _ = whole
    policy = Policy.load(path / "policies" / step_name(12), seed=7)
    with np.load(path / "trajectories" / f"{step_name(12)}-seed7.npz") as file:
        assert file["positions"].shape[1] == 2
    action = policy.act(np.zeros(3))
    assert action.shape == (2,)
    saved = safetensors.numpy.load_file(path / "checkpoints" / step_name(12) / ARRAYS)
    kernel = next(name for name in saved if re.fullmatch(r"states/actor/network/.*layers/0/kernel", name))
    np.testing.assert_array_equal(policy.networks.actor.network.layers[0].kernel, saved[kernel][1])


def test_a_finished_run_is_left_as_it_is(copy, whole):
    before = files(copy)
    outcome = run(copy)
    assert files(copy) == before
    assert outcome.scores == whole[1].scores
    assert outcome.step == 12


def die_at(monkeypatch, moment):
    """Make the run end at a moment at which a kill would hurt."""

    def dying(function, when, before=False):
        calls = []

        def wrapped(*arguments):
            calls.append(arguments)
            if before and when(calls, *arguments):
                raise Killed
            result = function(*arguments)
            if when(calls, *arguments):
                raise Killed
            return result

        return wrapped

    def patch(owner, name, when, before=False):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name), when, before))

    match moment:
        case "before the configuration":
            patch(RunDirectory, "write_config", lambda calls, *_: True, before=True)
        case "after one seed was evaluated at step 0":
            patch(RunDirectory, "log_evaluation", lambda calls, *_: len(calls) == 1)
        case "before the first checkpoint":
            patch(Trainer, "advance", lambda calls, run, *_: run.step == 2)
        case "after one seed was evaluated at step 6":
            patch(RunDirectory, "log_evaluation", lambda calls, *_: len(calls) == 3)
        case "between the files of a checkpoint":
            patch(checkpoints, "write_synced", lambda calls, path, _: ".000000006.partial/arrays" in str(path))
        case "after rows that no checkpoint holds":
            patch(Trainer, "log", lambda calls, run: run.step == 8)
        case "before old checkpoints are dropped":
            patch(RunDirectory, "drop_old_checkpoints", lambda calls, *_: len(calls) == 4, before=True)


@pytest.mark.parametrize(
    ("moment", "resumed_at"),
    [
        ("before the configuration", 0),
        ("after one seed was evaluated at step 0", 0),
        ("before the first checkpoint", 0),
        ("after one seed was evaluated at step 6", 6),
        ("between the files of a checkpoint", 3),
        ("after rows that no checkpoint holds", 6),
        ("before old checkpoints are dropped", 9),
    ],
)
def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(whole, tmp_path, caplog, moment, resumed_at):
    path = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, moment)
        with pytest.raises(Killed):
            run(path)
    outcome = run(path, quiet=False)
    assert (f"resuming {path} at step {resumed_at}\n" in caplog.text) == (resumed_at > 0)
    assert_same_run(path, whole[0])
    assert outcome.scores == whole[1].scores


# Trains as `run` above does and kills itself, without a chance to tidy up, after the rows of step 8.
KILLED = """
import os, signal, sys
from toys import tiny_config, tiny_task
from drol.training.train import train
from drol.training.trainer import Trainer

log = Trainer.log

def log_and_die(run):
    log(run)
    if run.step == 8:
        os.kill(os.getpid(), signal.SIGKILL)

Trainer.log = log_and_die
train(tiny_config(), sys.argv[1], tiny_task(), processes=2, quiet=True)
"""


def test_kill_9_in_another_process_changes_no_bit(whole, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=":")
    path = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    directory = RunDirectory(path)
    assert steps(directory.read_metrics())[-1] == (8, 7)
    assert saved_steps(directory.checkpoints) == [3, 6]
    run(path, quiet=False)
    assert f"resuming {path} at step 6\n" in caplog.text
    assert_same_run(path, whole[0])


def test_sigterm_saves_after_the_chunk_and_the_rest_is_as_if_it_had_not_come(whole, tmp_path, monkeypatch, caplog):
    advance = Trainer.advance

    def advance_and_ask_to_stop(self, *arguments):
        advance(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", advance_and_ask_to_stop)
        outcome = run(tmp_path / "run")
    assert outcome.stopped_by == signal.SIGTERM
    assert outcome.step == 1  # the first chunk is one update, in the middle of every interval
    assert saved_steps(outcome.directory.checkpoints) == [0, 1]
    assert steps(outcome.directory.read_metrics()) == []
    assert signal.getsignal(signal.SIGTERM) is before
    assert run(tmp_path / "run", quiet=False).stopped_by is None
    assert f"resuming {tmp_path / 'run'} at step 1\n" in caplog.text
    assert_same_run(tmp_path / "run", whole[0])


def test_a_damaged_checkpoint_is_noted_and_the_one_before_it_used(copy, whole, caplog):
    arrays = copy / "checkpoints" / step_name(12) / ARRAYS
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    run(copy, quiet=False)
    noted = caplog.text
    assert "skipped the checkpoint of step 12: arrays.safetensors does not match its checksum" in noted
    assert f"resuming {copy} at step 9" in noted
    assert_same_run(copy, whole[0])


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"algorithm": dataclasses.replace(TINY, bc_weight=0.5)}, "bc_weight was 1.0, now 0.5"),
        ({"seeds": (0,)}, "seeds was [0, 7], now [0]"),
        ({"log_interval": 2}, "log_interval was 4, now 2"),
    ],
)
def test_a_folder_with_another_run_is_refused_and_left_alone(copy, changes, difference):
    before = files(copy)
    with pytest.raises(InputError) as caught:
        run(copy, **changes)
    assert str(caught.value) == f"the folder {copy} holds another run ({difference}); choose another folder"
    assert files(copy) == before


@pytest.mark.parametrize("observation_size", [3, 4])
def test_other_data_is_refused_and_the_run_left_alone(copy, observation_size):
    before = files(copy)
    other = Dataset.from_rows(**random_rows([50, 100, 50], seed=5, observation_size=observation_size))
    with pytest.raises(InputError) as caught:
        run(copy, tiny_task(train=other, validation=None))
    assert str(caught.value) == f"the data of toy is not what the run in {copy} began with"
    assert files(copy) == before


def test_steps_may_grow_but_not_shrink(whole, tmp_path):
    path = tmp_path / "run"
    assert run(path, steps=7).step == 7
    assert run(path, steps=12).step == 12
    for name in ("checkpoints", "policies"):  # the row of the first end stays, but the training is the same
        ours, theirs = (each / name / step_name(12) / ARRAYS for each in (path, whole[0]))
        found, expected = (safetensors.numpy.load_file(each) for each in (ours, theirs))
        assert found.keys() == expected.keys()
        for key in found:
            if not key.startswith("totals"):
                np.testing.assert_array_equal(found[key], expected[key])
    assert RunDirectory(path).read_config()["run"]["steps"] == 12
    with pytest.raises(InputError) as caught:
        run(path, steps=11)
    assert str(caught.value) == f"the run in {path} has 12 steps; steps 11 cannot be fewer"


def test_to_make_a_trainer_changes_nothing_on_the_disk(copy, tmp_path):
    """Also where a checkpoint is older than the rows, so that `resume` has something to forget."""
    shutil.rmtree(copy / "checkpoints" / step_name(12))
    before = files(copy)
    for path in (copy, tmp_path / "new"):
        Trainer(tiny_config(), RunDirectory(path), tiny_task(), quiet=True)
    assert files(copy) == before
    assert not (tmp_path / "new").exists()


def test_a_hyperparameter_called_steps_may_not_grow(copy):
    """Only the run's own numbers of steps may; a nested setting of the same name is another setting."""
    config = RunDirectory(copy).read_config()
    config["run"]["algorithm"]["steps"] = 3
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"holds another run \(steps was 3, now None\)"):
        run(copy)


def test_a_run_that_is_older_than_a_setting_goes_on_with_its_default(copy):
    config = RunDirectory(copy).read_config()
    del config["run"]["success_timing"]
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"holds another run \(success_timing was environment, now after\)"):
        run(copy, success_timing="after")
    assert run(copy, steps=15).step == 15


def test_a_task_of_another_name_is_refused(tmp_path):
    with pytest.raises(InputError, match="the task is 'other' and the settings are for 'toy'"):
        run(tmp_path / "run", tiny_task(name="other"))


def test_a_run_in_use_is_refused(copy):
    with RunDirectory(copy).locked(), pytest.raises(InputError, match="another process is writing"):
        run(copy, steps=20)


def test_going_on_under_other_circumstances_is_noted(copy, monkeypatch, caplog):
    monkeypatch.setattr(trainer, "circumstances", lambda: {"jax": "9.9", "cores": 64})
    run(copy, quiet=False)
    noted = caplog.text
    assert "the result will not be bit-identical to an uninterrupted run" in noted
    assert f"jax was {jax.__version__}, now 9.9" in noted


def test_a_task_without_an_environment_trains(tmp_path):
    outcome = run(tmp_path / "run", tiny_task(None))
    assert (outcome.step, outcome.scores) == (12, None)
    rows = outcome.directory.read_evaluations()
    assert steps(rows) == [(step, seed) for step in (0, 6, 12) for seed in (0, 7)]
    for row in rows:
        assert row.score is None
        assert row.offline["single_sample_error"] >= row.offline["routed_bc_loss"] > 0
        assert 0 <= row.offline["outside_support"] <= 1
    assert steps(outcome.directory.read_metrics())[-1] == (12, 7)
    assert saved_steps(outcome.directory.policies) == [0, 6, 12]
    assert run(tmp_path / "run", tiny_task(None)).scores is None


def test_environments_that_break_are_noted_and_training_goes_on(tmp_path, caplog):
    broken = functools.partial(Walk, "raises in reset", 1)
    outcome = run(tmp_path / "run", tiny_task(make_environment=broken), quiet=False, steps=1)
    assert outcome.step == 1
    assert "1 of 3 episodes failed: RuntimeError: no such maze" in caplog.text
    episodes = outcome.evaluations[0].episodes
    assert [episode.failure for episode in episodes] == [None, "RuntimeError: no such maze", None]


def test_an_environment_that_always_breaks_ends_the_run_with_its_reason(tmp_path):
    task = tiny_task(make_environment=functools.partial(Walk, no_such_option=1))
    with pytest.raises(EnvironmentFailed, match=r"all 3 episodes .* failed: TypeError: .*no_such_option"):
        run(tmp_path / "run", task, steps=1)


def test_standardised_observations_are_trained_on_and_saved_with_the_policy(whole, tmp_path):
    run(tmp_path / "run", standardise_observations=True, steps=4)
    standardisation = Policy.load(tmp_path / "run" / "policies" / step_name(4), 0).standardisation
    observation = np.asarray(tiny_task().train.observation)
    np.testing.assert_allclose(standardisation.mean, observation.mean(0), rtol=0, atol=1e-6)
    np.testing.assert_allclose(standardisation.deviation, observation.std(0), rtol=1e-5)
    found, plain = (RunDirectory(path).read_metrics()[0] for path in (tmp_path / "run", whole[0]))
    assert found.step == plain.step == 4
    assert found.values["critic_loss"] != plain.values["critic_loss"]


def full_disk_at(monkeypatch, step):
    write = checkpoints.write_synced

    def write_synced(path, data):
        if f"checkpoints/.{step_name(step)}.partial" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    monkeypatch.setattr(checkpoints, "write_synced", write_synced)


def test_a_full_disk_at_a_checkpoint_is_noted_and_training_goes_on(whole, tmp_path, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        full_disk_at(patch, 9)
        outcome = run(tmp_path / "run", quiet=False)
    assert outcome.step == 12
    noted = caplog.text
    assert "the checkpoint of step 9 was not saved (No space left on device); the one before is kept" in noted
    assert saved_steps(outcome.directory.checkpoints) == [6, 12]
    for name, content in comparable(whole[0]).items():
        if step_name(9) not in name:
            assert comparable(tmp_path / "run")[name] == content, name


def test_a_full_disk_at_the_last_checkpoint_is_an_error_that_can_be_mended(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        full_disk_at(patch, 12)
        with pytest.raises(OSError, match="No space left on device"):
            run(tmp_path / "run")
    assert saved_steps(tmp_path / "run" / "checkpoints") == [6, 9]
    run(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole[0])


def test_settings_of_another_type_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"^config is 'x'; it must be a drol.RunConfig, such as drol.settings\(\)"):
        train("x", tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
