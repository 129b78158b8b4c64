import functools
import os
from types import SimpleNamespace

import pytest
from fake_environments import Walk

from drol.algorithms.bc import BC
from drol.tasks import find_source
from drol_reproduction.bench import fresh_process, processes

BC_SMALL = BC(hidden_sizes=(8, 8), batch_size=4)


def test_a_start_is_measured_and_leaves_its_programs_in_the_cache(tmp_path):
    with processes.Child() as process:
        answer = process.ask("a start", fresh_process.train, BC_SMALL, 301, tmp_path)
    assert answer["seconds_to_first_update"] > 0
    assert answer["peak_memory_bytes"] > 50e6
    assert any(tmp_path.iterdir())


def test_evaluation_counts_the_steps_of_episodes_that_are_cut(monkeypatch):
    source = SimpleNamespace(
        make_environment=lambda task: functools.partial(Walk, "healthy"), shares_process=lambda task: True
    )
    monkeypatch.setattr("drol.tasks.find_source", lambda task: source)
    monkeypatch.setattr(fresh_process, "STEPS", 3)
    evaluation = fresh_process.Evaluation("toy")
    try:
        answer = evaluation.run("bc", BC_SMALL, 5)
    finally:
        evaluation.evaluator.stop()
    assert answer["steps"] == 5 * 3
    assert answer["seconds"] > 0


def test_a_task_without_an_environment_is_refused(monkeypatch):
    monkeypatch.setattr("drol.tasks.find_source", lambda task: SimpleNamespace(make_environment=lambda task: None))
    with pytest.raises(ValueError, match="the task toy has no environment to step"):
        fresh_process.Evaluation("toy")


def test_an_ogbench_environment_needs_no_dataset(monkeypatch, tmp_path):
    monkeypatch.setenv("DROL_DATA_DIR", str(tmp_path))
    task = "cube-single-play-singletask-task1-v0"
    maker = find_source(task).make_environment(task)
    assert maker.args == ("cube-single-singletask-task1-v0",)


def test_prints_of_libraries_and_ctrl_c_do_not_reach_the_results():
    with processes.Child() as process:
        assert (
            process.ask("a signal", fresh_process.signal.getsignal, fresh_process.signal.SIGINT)
            == fresh_process.signal.SIG_IGN
        )
        same = process.ask("a file", os.path.sameopenfile, 1, 2)
    assert same
