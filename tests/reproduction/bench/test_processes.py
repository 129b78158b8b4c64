import os
import signal

import pytest

from drol.errors import InputError
from drol_reproduction.bench import fresh_process, processes
from drol_reproduction.bench.methods import make_algorithms


def test_a_fresh_process_has_its_own_memory_and_the_cores_that_it_was_given():
    cores = sorted(os.sched_getaffinity(0))[:1]
    with processes.Child(cores) as process:
        assert process.ask("cores", os.sched_getaffinity, 0) == set(cores)
        peak = process.ask("memory", fresh_process.peak_memory)
    assert 2**20 < peak < 150e6 < fresh_process.peak_memory()  # jax alone takes more, and it is here, not there
    with pytest.raises(ProcessLookupError):
        os.kill(process.process, 0)


def test_what_goes_wrong_in_a_process_is_one_line():
    with processes.Child() as process:
        with pytest.raises(InputError, match=r"^cannot measure a number: ValueError: invalid literal .* 'three'$"):
            process.ask("a number", int, "three")
        assert process.ask("a number", int, "3") == 3
        os.kill(process.process, signal.SIGKILL)
        with pytest.raises(InputError, match="the process that measures a sleep ended, perhaps"):
            process.ask("a sleep", fresh_process.time.sleep, 60)


def test_a_busy_process_ends_with_the_one_that_asked():
    process = processes.Child()
    process.pool.submit(fresh_process.time.sleep, 600)
    process.__exit__(KeyboardInterrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(process.process, 0)


def test_one_core_two_and_all_are_measured(monkeypatch):
    for cores, expected in (({4}, [[4]]), ({1, 0}, [[0], [0, 1]]), ({0, 1, 2, 3}, [[0], [0, 1], [0, 1, 2, 3]])):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        assert processes.cores_to_measure() == expected


def test_the_gain_of_two_cores_is_a_median_of_rounds():
    assert processes.gain_of_two_cores({"1": [1.0, 2.0, 4.0], "2": [2.0, 3.0, 4.0]}) == 1.5
    assert processes.gain_of_two_cores({"1": [1.0]}) is None


class FakeChild:
    """Plays 100 steps an episode, at 1000 steps a second and core; fewer for iql."""

    asked: list

    def __init__(self, cores=None):
        self.cores = len(cores)

    def ask(self, what, function, task, name, algorithm, episodes):
        assert (function, task) == (fresh_process.evaluate, "toy")
        self.asked.append((name, self.cores, episodes))
        rate = (50 if name == "iql" else 1000) * self.cores
        return {"steps": 100 * episodes, "seconds": 100 * episodes / rate}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asked.append("stop")


@pytest.fixture
def asked(monkeypatch):
    FakeChild.asked = []
    monkeypatch.setattr(processes, "Child", FakeChild)
    monkeypatch.setattr(processes, "EVALUATION_SECONDS", 20)
    return FakeChild.asked


def test_every_number_of_cores_plays_in_turn_and_slow_methods_play_less(asked):
    said = []
    algorithms = make_algorithms(["bc", "iql"], "paper")
    found = processes.measure_evaluation(algorithms, "toy", 2, cores=[[0], [0, 1]], say=said.append)
    start = [("bc", 1, 8), ("bc", 2, 8), ("iql", 1, 8), ("iql", 2, 8)]
    one_round = [("bc", 1, 50), ("bc", 2, 50), ("iql", 1, 10), ("iql", 2, 10)]  # 20 s of 50 steps are 10 episodes
    assert asked == [*start, *one_round, *one_round, "stop", "stop"]
    assert len(said) == 12
    assert said[5] == "round 1 of 2, bc on 2 cores"
    assert found["bc"] == {
        "evaluation_steps_per_second": {"1": pytest.approx(1000), "2": pytest.approx(2000)},
        "evaluation_episodes": 50,
        "evaluation_gain_of_two_cores": pytest.approx(2),
    }
    assert found["iql"]["evaluation_episodes"] == 10


def test_as_many_episodes_as_are_asked_for_are_played_however_long_they_take(asked):
    found = processes.measure_evaluation(make_algorithms(["iql"], "paper"), "toy", 1, episodes=60, cores=[[0]])
    assert asked == [("iql", 1, 8), ("iql", 1, 60), "stop"]
    assert found["iql"]["evaluation_episodes"] == 60
