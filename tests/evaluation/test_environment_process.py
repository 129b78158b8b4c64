"""A process of an environment, and the script that starts it."""

import subprocess
import sys
import textwrap

import pytest
from fake_environments import Walk
from toys import TESTS

from drol.evaluation.environment_process import EnvironmentProcess, is_defined_in_main
from drol.evaluation.worker import Broke, Reset, Seen, Step, episode_limit

TRAIN = """
    import sys
    from pathlib import Path
    import drol
    from toys import tiny_config, tiny_task
    {environment}
    with open(sys.argv[2], "a") as file:
        file.write("x")
    run = drol.train(tiny_config(steps=2, seeds=(0,)), sys.argv[1], tiny_task(**{changes}), processes=2, quiet=True)
    print("scores", run.scores, run.evaluations[-1].failures)
"""
OWN_ENVIRONMENT = """
    from fake_environments import Walk
    class Mine(Walk):
        pass
"""


def run_script(tmp_path, monkeypatch, text):
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=":")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    line = [sys.executable, str(script), str(tmp_path / "run"), str(tmp_path / "starts")]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_a_script_without_a_main_guard_is_run_once(tmp_path, monkeypatch):
    done = run_script(tmp_path, monkeypatch, TRAIN.format(environment="", changes="{}"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("scores [")
    assert done.stdout.endswith("[]\n")
    assert (tmp_path / "starts").read_text() == "x"


def test_one_that_defines_the_environment_without_a_guard_is_told_what_to_do(tmp_path, monkeypatch):
    changes = '{"make_environment": Mine}'
    done = run_script(tmp_path, monkeypatch, TRAIN.format(environment=OWN_ENVIRONMENT, changes=changes))
    assert done.returncode != 0
    assert 'put the training under `if __name__ == "__main__":`' in done.stderr
    assert "all 3 episodes of the evaluation failed" in done.stderr


def test_one_that_defines_the_environment_and_has_a_guard_trains(tmp_path, monkeypatch):
    head, tail = TRAIN.split('    with open(sys.argv[2], "a") as file:', 1)
    indented = textwrap.indent('    with open(sys.argv[2], "a") as file:' + tail, "    ")
    text = f'{head}    if __name__ == "__main__":\n{indented}'
    changes = '{"make_environment": Mine}'
    done = run_script(tmp_path, monkeypatch, text.format(environment=OWN_ENVIRONMENT, changes=changes))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("scores [")


def test_what_is_defined_in_the_main_script_is_known_by_its_pickle():
    class Main(Walk):
        pass

    Main.__module__, Main.__qualname__ = "__main__", "Main"
    main = sys.modules["__main__"]
    main.Main = Main
    try:
        assert is_defined_in_main(Main)
    finally:
        del main.Main
    assert not is_defined_in_main(Walk)


@pytest.fixture
def process():
    process = EnvironmentProcess(Walk, timeout=60.0, modules=("fake_environments", "no_such_module"))
    yield process
    process.stop()


def test_a_process_answers_resets_and_steps_and_starts_again_after_its_end(process):
    process.send(Reset(3))
    first = process.receive()
    assert isinstance(first, Seen)
    process.send(Step(first.observation[:2]))
    assert isinstance(process.receive(), Seen)
    process.worker[0].kill()
    process.send(Reset(3))
    assert process.receive() == Broke("the environment's process ended with exit code -9")
    process.send(Reset(3))
    again = process.receive()
    assert (again.observation == first.observation).all()


def test_a_fork_server_that_was_killed_is_started_again(process, monkeypatch):
    """A kill while the process started was a traceback."""
    monkeypatch.setattr(EnvironmentProcess, "starts", 0, raising=False)
    start = process.context.Process.start

    def start_second_time(started):
        EnvironmentProcess.starts += 1
        if EnvironmentProcess.starts == 1:
            raise EOFError("unexpected EOF")
        start(started)

    monkeypatch.setattr(process.context.Process, "start", start_second_time)
    process.send(Reset(3))
    assert isinstance(process.receive(), Seen)
    assert EnvironmentProcess.starts == 2


def test_the_limit_of_an_episode_is_that_of_the_environment():
    import gymnasium

    class Limited(gymnasium.Env):
        pass

    assert episode_limit(gymnasium.wrappers.TimeLimit(gymnasium.Wrapper(Limited()), 7)) == 7
    assert episode_limit(gymnasium.make("CartPole-v1")) == 500
    assert episode_limit(Walk()) is None
