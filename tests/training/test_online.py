import functools
import shutil

import numpy as np
import pytest
from fake_environments import Walk
from run_folders import Killed
from safetensors.numpy import load_file
from toys import tiny_config, tiny_task

from drol.checkpoints import saved_steps
from drol.errors import InputError
from drol.evaluation.episodes import EnvironmentFailed
from drol.evaluation.worker import reset
from drol.runs.directory import RunDirectory
from drol.training.online import Interaction
from drol.training.train import train
from drol.training.trainer import Trainer

ONLINE = {"steps": 4, "online_steps": 20, "log_interval": 4, "evaluation_interval": 12, "checkpoint_interval": 5}


def run(path, task=None, **changes):
    return train(tiny_config(**(ONLINE | changes)), path, task or tiny_task(), processes=2, quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("online") / "run"
    assert run(path).step == 24
    return path


def checkpoint(path):
    newest = saved_steps(path / "checkpoints")[-1]
    return (path / "checkpoints" / f"{newest:09d}" / "arrays.safetensors").read_bytes()


def test_online_updates_follow_the_offline_ones_and_their_episodes_are_recorded(whole):
    directory = RunDirectory(whole)
    assert {row.step for row in directory.read_evaluations()} == {0, 4, 12, 24}
    assert {row.step for row in directory.read_metrics()} == {4, 8, 12, 16, 20, 24}
    episodes = directory.read_online_episodes()
    assert {row.seed for row in episodes} == {0, 7}
    for seed in (0, 7):
        mine = [row for row in episodes if row.seed == seed]
        assert np.all(np.diff([row.step for row in mine]) == [row.length for row in mine[1:]])
        assert mine[0].step == 4 + mine[0].length  # the first online step is the fifth
    assert all(row.total_reward < 0 for row in episodes)


def trained_arrays(path):
    """The networks and optimisers of the newest checkpoint, without the experience that it also holds."""
    newest = saved_steps(path / "checkpoints")[-1]
    arrays = load_file(path / "checkpoints" / f"{newest:09d}" / "arrays.safetensors")
    return {name: array for name, array in arrays.items() if name.startswith("states/")}


def differs(first, second):
    return any((first[name] != second[name]).any() for name in first)


def test_experience_is_used(whole, tmp_path):
    """Networks learn something else from other rewards of the environment, and from other shares of its data."""
    run(tmp_path / "other", tiny_task(reward_offset=5.0))
    run(tmp_path / "balanced", online_data="balance")
    for name in ("other", "balanced"):
        assert differs(trained_arrays(tmp_path / name), trained_arrays(whole)), name


@pytest.mark.parametrize("stop_at", [4, 7, 15])
def test_a_killed_run_goes_on_as_if_it_had_not_been(whole, tmp_path, monkeypatch, stop_at):
    path = tmp_path / "run"
    log = Trainer.log

    def kill(self):
        if self.step > stop_at:
            raise Killed
        log(self)

    monkeypatch.setattr(Trainer, "log", kill)
    with pytest.raises(Killed):
        run(path)
    monkeypatch.undo()
    run(path)
    assert checkpoint(path) == checkpoint(whole)
    assert RunDirectory(path).read_online_episodes() == RunDirectory(whole).read_online_episodes()
    assert RunDirectory(path).read_metrics() == RunDirectory(whole).read_metrics()


def test_a_bounded_replay_overwrites_the_oldest_and_is_resumed_exactly(tmp_path, monkeypatch):
    bounded = {"replay_size": 9, "online_steps": 30, "checkpoint_interval": 1}  # episodes have up to nine steps
    run(tmp_path / "whole", **bounded)
    held = load_file(tmp_path / "whole" / "checkpoints" / "000000034" / "arrays.safetensors")
    assert held["online/experiences/start"].shape == (2, 9)
    assert held["online/experiences/last"].shape == (2, 19)
    assert (held["online/experiences/size"] == 30).all()
    step = Interaction.step

    def kill(stop_at, interaction, *arguments):
        if arguments[-1] > stop_at:
            raise Killed
        step(interaction, *arguments)

    for stop_at in (10, 15, 21, 26, 33):  # before it is full, and at all places of its rows
        with monkeypatch.context() as patch:
            patch.setattr(Interaction, "step", lambda *arguments, stop=stop_at: kill(stop, *arguments))
            with pytest.raises(Killed):
                run(tmp_path / "cut", **bounded)
    run(tmp_path / "cut", **bounded)
    assert checkpoint(tmp_path / "cut") == checkpoint(tmp_path / "whole")
    ours, theirs = (RunDirectory(tmp_path / name).read_online_episodes() for name in ("cut", "whole"))
    assert ours == theirs


def test_a_replay_that_is_shorter_than_an_episode_is_refused(tmp_path):
    with pytest.raises(InputError, match="replay_size is 2; it must be at least the length of the longest episode"):
        run(tmp_path / "run", replay_size=2)


class Limited(Walk):
    """A walk that says how long its episodes may be."""

    def __init__(self):
        super().__init__()
        self._max_episode_steps = 9


def test_a_replay_that_is_too_small_is_refused_before_the_first_update(tmp_path):
    """It was refused after all offline updates, perhaps a week later, and the folder could not be used again."""
    task = tiny_task(make_environment=Limited)
    with pytest.raises(InputError, match="replay_size is 8; it must be at least 9, the steps of the longest episode"):
        run(tmp_path / "run", task, replay_size=8)
    assert not (tmp_path / "run" / "config.json").exists()
    assert run(tmp_path / "run", task, replay_size=9, steps=1, online_steps=10).step == 11


def test_online_steps_can_follow_a_finished_run_and_grow(whole, tmp_path):
    path = tmp_path / "run"
    run(path, online_steps=0)
    run(path, online_steps=11)
    run(path)
    assert checkpoint(path) == checkpoint(whole)


def test_a_run_refuses_fewer_online_steps_and_more_offline_ones(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    with pytest.raises(InputError, match="has 20 online steps; online_steps 5 cannot be fewer"):
        run(copy, online_steps=5)
    with pytest.raises(InputError, match="trains online after 4 steps; steps 8 cannot be more"):
        run(copy, steps=8)


def test_without_an_environment_there_is_nothing_to_step(tmp_path):
    with pytest.raises(InputError, match="online_steps needs an environment, and toy has only data"):
        run(tmp_path / "run", tiny_task(environment=None))


def test_an_environment_that_breaks_costs_its_episode(tmp_path):
    environment = functools.partial(BreaksOnce, tmp_path / "broke")
    outcome = run(tmp_path / "run", tiny_task(make_environment=environment), seeds=(0,))
    assert outcome.step == 24
    rows = RunDirectory(tmp_path / "run").read_online_episodes()
    assert [row.failure for row in rows if row.failure] == ["RuntimeError: the hand fell off"]


def test_an_environment_that_never_starts_ends_the_run_with_its_reason(tmp_path):
    task = tiny_task(make_environment=NeverStarts)
    with pytest.raises(
        EnvironmentFailed, match="seed 0 broke 10 times when it was started: RuntimeError: no such maze"
    ):
        run(tmp_path / "run", task, seeds=(0,))


def test_observations_are_standardised_as_those_of_the_data(tmp_path):
    """The experience of a run with standardised observations equals the environment's, shifted and scaled."""
    task = tiny_task()
    config = tiny_config(**(ONLINE | {"seeds": (0,), "standardise_observations": True}))
    made = Trainer(config, RunDirectory(tmp_path / "run"), task, quiet=True)
    with made.interaction:
        made.interaction.start()
        seen = np.asarray(made.interaction.experiences.observation[0, 0])
        first = reset(task.make_environment(), made.interaction.episode_seed(0, 0)).observation
    observation = np.asarray(task.train.observation)
    expected = (first - observation.mean(0)) / observation.std(0)
    np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(seen - first).max() > 0.01


class BreaksOnce(Walk):
    """Raises in the third step of the first online episode; a file remembers it."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def reset(self, seed):
        self.online = seed >= 2**31
        return super().reset(seed)

    def step(self, action):
        if self.online and self.steps == 2 and not self.path.exists():
            self.path.touch()
            raise RuntimeError("the hand fell off")
        return super().step(action)


class NeverStarts(Walk):
    """Raises in every reset of an online episode."""

    def reset(self, seed):
        if seed >= 2**31:
            raise RuntimeError("no such maze")
        return super().reset(seed)
