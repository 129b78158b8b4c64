"""The settings of a run on own data follow from the size of the data and the speed of the machine."""

import dataclasses

import pytest
from toys import random_rows, saved_run, tiny_task

import drol
from drol.algorithms import ALGORITHMS
from drol.data.dataset import Dataset
from drol.presets.settings import OWN, starting_settings
from drol.training import own_data
from drol.training.own_data import choose_settings, network_words, rounded_down, seconds_per_update


class Sized:
    """Data that claims to have a number of transitions."""

    def __init__(self, size):
        self.size = size


@pytest.fixture
def speed(monkeypatch):
    """Seconds of one update by the width of the first layer; trajectories are short."""
    seconds = {128: 0.01, 256: 0.03, 512: 0.1}
    monkeypatch.setattr(own_data, "seconds_per_update", lambda config, *_: seconds[config.algorithm.hidden_sizes[0]])
    monkeypatch.setattr(own_data, "has_long_trajectories", lambda task: False)
    return seconds


def chosen(size, algorithm=None, folder=None, **given):
    task = dataclasses.replace(tiny_task(None), train=Sized(size))
    return choose_settings(starting_settings(task, algorithm, OWN, **given), given, task, folder)


def sizes_of(choice):
    return choice.config.algorithm.hidden_sizes, choice.config.steps


@pytest.mark.usefixtures("speed")
def test_networks_and_updates_follow_the_size_of_the_data():
    assert sizes_of(chosen(1_663)) == ((128,) * 3, 20_000)
    assert sizes_of(chosen(22_345)) == ((256,) * 3, 22_000)
    assert sizes_of(chosen(45_000)) == ((256,) * 3, 45_000)
    assert sizes_of(chosen(1_000_000)) == ((256,) * 3, 60_000)  # 4x512 would get 18,000 updates in half an hour
    assert chosen(1_663).config.algorithm.to_dict()["discount"] == 0.99


def test_networks_and_updates_follow_the_speed_of_the_machine(speed):
    speed[512] = 0.001
    assert sizes_of(chosen(1_000_000)) == ((512,) * 4, 200_000)
    assert sizes_of(chosen(22_345)) == ((256,) * 3, 22_000)
    speed[256], speed[128] = 0.2, 0.1
    assert sizes_of(chosen(22_345)) == ((128,) * 3, 18_000)


@pytest.mark.usefixtures("speed")
def test_the_line_names_the_choice_its_reason_and_the_flags():
    assert chosen(22_345).words == (
        "method drol-choice, networks 3x256, 22,000 updates (about 11 minutes here): chosen from 22,345 transitions; "
        "override with --algorithm, --hidden-sizes, --steps"
    )


def test_what_is_given_wins_and_needs_no_timing(monkeypatch):
    monkeypatch.setattr(own_data, "seconds_per_update", pytest.fail)
    monkeypatch.setattr(own_data, "has_long_trajectories", lambda task: False)
    choice = chosen(1_663, "iql", hidden_sizes=(64, 32), steps=300, learning_rate=0.5, log_interval=7)
    algorithm = drol.IQL(hidden_sizes=(64, 32), learning_rate=0.5, target_rate=0.02)
    assert choice.config == drol.RunConfig(
        algorithm, "toy", steps=300, log_interval=7, evaluation_interval=60, checkpoint_interval=30,
        standardise_observations=True,
    )  # fmt: skip
    assert (
        choice.words
        == "method iql, networks 64-32, 300 updates: chosen from 1,663 transitions; override with --algorithm"
    )


def test_long_trajectories_raise_the_discount():
    task = tiny_task(None, train=Dataset.from_rows(**random_rows([501, 600, 20])))
    given = {"hidden_sizes": (8,), "steps": 3}
    choice = choose_settings(starting_settings(task, None, OWN, **given), given, task)
    assert choice.config.algorithm.to_dict()["discount"] == 0.995
    assert "discount 0.995" in choice.words
    given["discount"] = 0.9
    assert choose_settings(starting_settings(task, None, OWN, **given), given, task).config.algorithm.discount == 0.9


def test_a_run_that_resumes_keeps_what_was_chosen_for_it(speed, tmp_path):
    began = chosen(22_345).config
    saved_run(tmp_path / "run", began, ())
    speed[256] = 10.0  # the machine is busy now
    again = chosen(22_345, folder=tmp_path / "run")
    assert again.config == began
    assert f"as the run in {tmp_path / 'run'} began" in again.words
    longer = chosen(22_345, folder=tmp_path / "run", steps=30_000).config
    assert longer == dataclasses.replace(began, steps=30_000)
    assert sizes_of(chosen(22_345, "iql", folder=tmp_path / "run"))[0] == (128,) * 3  # another method: new settings


@pytest.mark.usefixtures("speed")
def test_every_method_gets_settings():
    for name in ALGORITHMS:
        assert chosen(1_663, name).config.algorithm.to_dict()["hidden_sizes"] == (128,) * 3


def test_the_speed_is_measured_for_all_seeds(monkeypatch):
    monkeypatch.setattr(own_data, "TIMED", 1e-9)
    task = tiny_task(None)
    config = starting_settings(task, "bc", OWN, hidden_sizes=(8,), batch_size=4, seeds=(0, 1))
    assert 0 < seconds_per_update(config, task) < 60


def test_settings_of_a_task_in_memory_are_chosen_from_python(monkeypatch):
    monkeypatch.setattr(own_data, "seconds_per_update", lambda *_: 0.01)
    assert drol.settings(tiny_task(None)).algorithm == drol.DROLChoice(
        hidden_sizes=(128,) * 3, learning_rate=1e-3, target_rate=0.02
    )
    assert drol.settings(tiny_task()) == drol.RunConfig(drol.DROL(), "toy")  # with a simulator


def test_numbers_are_rounded_to_two_digits():
    assert [rounded_down(count) for count in (7, 99, 18_999, 123_456)] == [7, 99, 18_000, 120_000]
    assert [network_words(sizes) for sizes in ((256,) * 3, (64, 32))] == ["3x256", "64-32"]
