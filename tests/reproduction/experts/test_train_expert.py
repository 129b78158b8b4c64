import json
import os
import signal

import numpy as np
import pytest

from drol.cli.main import main
from drol.errors import InputError
from drol.tasks.ogbench.recipes import RECIPES
from drol_reproduction.collecting.ogbench.collect import check_experts
from drol_reproduction.experts import train_expert as module
from drol_reproduction.experts.expert import read_expert
from drol_reproduction.experts.sac import SAC
from drol_reproduction.experts.train_expert import Training, make_environment, train_expert

SETTINGS = {"steps": 300, "sac": SAC((16, 16), 8), "random_steps": 90, "checkpoint_interval": 110}


@pytest.fixture(autouse=True)
def one_measured_episode(monkeypatch):
    monkeypatch.setattr(module, "MEASURED_EPISODES", 1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The folder of an expert whose training was not interrupted."""
    folder = tmp_path_factory.mktemp("reference") / "ant"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MEASURED_EPISODES", 1)
        reports = []
        trained = train_expert(folder, **SETTINGS, report=lambda *report: reports.append(report[:2]))
    assert (trained.step, trained.stopped_by) == (300, None)
    assert reports == [(100, 300), (200, 300), (300, 300)]  # after the random steps
    assert not folder.with_name("ant.training").exists()
    return folder


def test_the_expert_loads_and_acts_and_says_how_it_was_made(reference):
    expert = read_expert(reference)
    check_experts("antmaze-large-navigate-v0", RECIPES["antmaze-large-navigate-v0"], [expert])
    assert (expert.activation, expert.output, expert.input) == ("gelu", "tanh", "ogbench-direction")
    assert expert.direction_scale == 1.0
    action = expert.walking_action(np.zeros(29), np.array([1.0, 0.0]))
    assert action.shape == (8,)
    assert (np.abs(action) < 1).all()
    about = json.loads((reference / "policy.json").read_text())["training"]
    assert (about["environment"], about["seed"], about["steps"]) == ("online-ant-xy-v0", 0, 300)
    assert about["versions"].keys() >= {"ogbench", "mujoco"}
    assert [step for step, _ in about["learning_curve"]] == [110, 220, 300]


def test_the_expert_takes_the_mean_action_of_the_actor(tmp_path):
    training = Training(tmp_path, 1, 0, SETTINGS["sac"], 1)
    observation = np.linspace(-1, 1, 29).astype(np.float32)
    mean = np.asarray(training.state.networks.network.actor(observation))[:8]
    np.testing.assert_allclose(training.expert()(observation), np.tanh(mean), atol=1e-6)


def test_another_seed_is_another_expert(tmp_path, reference):
    train_expert(tmp_path / "ant", **SETTINGS | {"steps": 100}, seed=1)
    train_expert(tmp_path / "same", **SETTINGS | {"steps": 100}, seed=1)
    digests = [read_expert(tmp_path / name).digest() for name in ("ant", "same")]
    assert digests[0] == digests[1] != read_expert(reference).digest()


def test_a_training_that_a_signal_stopped_resumes_exactly(tmp_path, reference, caplog):
    def stop(step, *_):
        if step == 200:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = train_expert(tmp_path / "ant", **SETTINGS, report=stop)
    assert (stopped.step, stopped.stopped_by) == (200, signal.SIGTERM)
    assert not (tmp_path / "ant").exists()
    caplog.set_level("INFO", "drol")
    train_expert(tmp_path / "ant", **SETTINGS)
    assert caplog.messages == ["resuming at step 200"]
    assert read_expert(tmp_path / "ant").digest() == read_expert(reference).digest()


class Killed(BaseException):
    """Stands for a kill: nothing of the training catches it."""


def test_a_killed_training_resumes_from_its_newest_valid_checkpoint(tmp_path, reference, caplog):
    def kill(step, *_):
        if step == 300:
            raise Killed

    with pytest.raises(Killed):
        train_expert(tmp_path / "ant", **SETTINGS, report=kill)
    arrays = tmp_path / "ant.training" / "000000220" / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-1])
    caplog.set_level("INFO", "drol")
    train_expert(tmp_path / "ant", **SETTINGS)
    assert caplog.messages[-1] == "resuming at step 110"
    assert "220" in caplog.messages[0]
    assert read_expert(tmp_path / "ant").digest() == read_expert(reference).digest()


def test_a_checkpoint_of_another_training_is_rejected(tmp_path):
    def stop(step, *_):
        if step == 100:
            os.kill(os.getpid(), signal.SIGTERM)

    train_expert(tmp_path / "ant", **SETTINGS, report=stop)
    with pytest.raises(InputError, match="has a training with seed 0, not 1; finish that training"):
        train_expert(tmp_path / "ant", **SETTINGS, seed=1)
    with pytest.raises(InputError, match="has a training of 100 steps; give --steps 100 or more"):
        train_expert(tmp_path / "ant", **SETTINGS | {"steps": 50})
    (tmp_path / "ant.training" / "000000100" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"no checkpoint in .* can be used"):
        train_expert(tmp_path / "ant", **SETTINGS)


def test_the_environment_is_the_ant_with_directions():
    environment = make_environment()
    np.random.seed(0)
    observation, _ = environment.reset(seed=0)
    before = environment.unwrapped.data.qpos[:2].copy()
    following, reward, *_ = environment.step(np.ones(8))
    moved = environment.unwrapped.data.qpos[:2] - before
    assert observation.shape == (29,)
    np.testing.assert_allclose(observation[-2:], following[-2:])
    np.testing.assert_allclose(reward, moved @ observation[-2:])
    assert (environment.resample_interval, environment.spec.max_episode_steps) == (100, 1000)
    environment.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"expert": "humanoid"}, "unknown expert 'humanoid'; experts that can be trained: ant"),
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
    ],
)
def test_bad_settings_are_one_line_and_nothing_is_written(tmp_path, settings, message):
    with pytest.raises(InputError) as caught:
        train_expert(tmp_path / "ant", **settings)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_the_command_answers_bad_input_in_one_line(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    for arguments, message in (
        (["ant", "--out", str(tmp_path / "mine")], "exists already; choose another --out"),
        (["ant", "--out", str(tmp_path / "new"), "--steps", "0"], "steps is 0"),
        (["cat", "--out", str(tmp_path / "new")], "invalid choice: 'cat'"),
        (["ant"], "--out"),
    ):
        assert main(["data", "train-expert", *arguments]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1


def test_the_command_trains(tmp_path, capsys):
    assert main(["data", "train-expert", "ant", "--out", str(tmp_path / "ant"), "--steps", "20"]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {tmp_path / 'ant'}: the ant walks ")
    assert read_expert(tmp_path / "ant").input_size == 29
