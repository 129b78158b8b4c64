"""Every example runs, and does what it says."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import drol_runtime
import numpy as np
import pytest

import drol
import drol.algorithms
import drol.tasks

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Import an example as a module; remove its registrations afterwards."""
    monkeypatch.setattr(drol.algorithms, "REGISTERED", {})
    monkeypatch.setattr(drol.tasks, "REGISTRY", drol.tasks.Registry())

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    monkeypatch.syspath_prepend(str(EXAMPLES))  # for the processes of environments
    return load


def test_every_example_has_a_test():
    tested = {"new_algorithm", "train_from_python", "new_task_source", "own_data", "own_loop"}
    tested |= {"control_loop", "control_loop_onnx", "bundle_in_the_maze"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == tested


def test_train_from_python(example, tmp_path):
    run = example("train_from_python").main(tmp_path / "run", steps=60)
    assert run.finished
    assert len(run.evaluations) == 4
    assert len(run.extra_evaluations) == len(run.offline_evaluations) == 2
    assert (tmp_path / "run" / "report.html").is_file()


def test_new_algorithm(example, tmp_path):
    module = example("new_algorithm")
    run = module.main(tmp_path / "run", steps=40)
    assert run.finished
    assert type(run.config.algorithm) is module.TD3BC
    observation = np.zeros(2)
    np.testing.assert_array_equal(run.policy().act(observation, seed=0), run.policy().act(observation, seed=1))
    with pytest.raises(drol.InputError, match="best_of is 4"):
        drol.evaluate(run, best_of=4)
    assert drol.evaluate(run, episodes=1)[0].best_of == 1
    assert drol.report(run).is_file()


def test_new_algorithm_from_the_shell(tmp_path):
    """Trained, evaluated and reported by name in processes that know it only by `--import`."""
    options = ["--preset", "laptop", "--hidden-sizes", "16", "--steps", "20", "--evaluation-episodes", "1", "--quiet"]
    out = str(tmp_path / "run")
    commands = [
        ["train", "--import", "new_algorithm", "--algorithm", "td3-bc", *options, "--out", out],
        ["evaluate", out, "--import=new_algorithm", "--episodes", "1"],
    ]
    for command in commands:
        line = [sys.executable, "-m", "drol.cli.main", *command]
        done = subprocess.run(line, cwd=EXAMPLES, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "seed 0, step 20, best of 1" in done.stdout
    line = [sys.executable, "-m", "drol.cli.main", "evaluate", out]
    refused = subprocess.run(line, cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "unknown algorithm 'td3-bc'" in refused.stderr


def test_new_task_source(example, tmp_path):
    assert 0 <= example("new_task_source").main(tmp_path / "run", steps=40) <= 100


def test_own_loop(example, capsys):
    assert example("own_loop").main(updates=200) < 0.1
    assert "one action: [" in capsys.readouterr().out


def test_own_data(example, tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "datasets"))
    assert example("own_data").main(tmp_path, steps=300) > 0.5


@pytest.fixture(scope="module")
def maze(tmp_path_factory):
    """A short run in the maze, and its bundle."""
    path = tmp_path_factory.mktemp("maze")
    changes = {"steps": 20, "hidden_sizes": (16, 16), "batch_size": 16, "evaluation_interval": 20}
    config = drol.settings(preset="laptop", evaluation_episodes=1, **changes)
    run = drol.train(config, path / "run")
    drol.export_policy(run, path / "bundle", onnx=True)
    return path


def test_control_loop(example, maze, monkeypatch, capsys):
    module = example("control_loop")
    monkeypatch.setattr(sys, "argv", ["control_loop", str(maze / "bundle"), "--rate", "200", "--seconds", "0.1"])
    module.main()
    printed = capsys.readouterr().out
    assert "20 actions" in printed
    assert "deadlines missed, 0 observations refused" in printed


def test_the_control_loop_takes_its_rate_from_the_bundle(example, maze, monkeypatch, capsys):
    module = example("control_loop")
    monkeypatch.setattr(sys, "argv", ["control_loop", str(maze / "bundle"), "--seconds", "0.1"])
    with pytest.raises(SystemExit):
        module.main()
    assert "the bundle does not have the rate of the data; give --rate" in capsys.readouterr().err
    load = drol_runtime.load

    def rated(*arguments, **named):
        policy = load(*arguments, **named)
        policy.control_rate = 100.0
        return policy

    monkeypatch.setattr(drol_runtime, "load", rated)
    module.main()
    assert "10 actions" in capsys.readouterr().out


def test_the_control_loop_holds_when_it_is_late_or_blind_and_limits_changes(example, maze):
    module = example("control_loop")
    policy = drol_runtime.load(maze / "bundle", seed=0)
    robot = module.Robot(2, 2)
    loop = module.Loop(policy, robot, rate=50, change_limit=0.05)
    loop.step(deadline=float("inf"))
    assert np.abs(loop.action).max() <= 0.1 + 1e-6
    held = loop.action.copy()
    loop.step(deadline=0.0)
    np.testing.assert_array_equal(loop.action, held)
    robot.state = np.asarray([np.nan, 0.0])
    loop.step(deadline=float("inf"))
    np.testing.assert_array_equal(loop.action, held)
    assert (loop.missed, loop.refused) == (1, 1)


def test_control_loop_with_onnx(example, maze, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["control_loop_onnx", str(maze / "bundle"), "--steps", "5"])
    example("control_loop_onnx").main()
    assert "p50" in capsys.readouterr().out


def test_a_bundle_plays_the_episodes_of_an_evaluation(example, maze):
    run = drol.open_run(maze / "run")
    successes, largest = example("bundle_in_the_maze").play(run, str(maze / "bundle"), episodes=1)
    assert successes == [False]
    assert largest < 1e-5
