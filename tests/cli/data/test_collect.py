"""`drol data collect` and `drol data expert` as a person types them."""

import subprocess
import sys

import numpy as np
import pytest

from drol.cli.data import collect as data_collect
from drol.cli.data import expert as data_expert
from drol.cli.data.collect import Display
from drol.cli.main import main
from drol.tasks.d4rl import names as d4rl
from drol.tasks.ogbench.collecting import collect as collecting
from drol.tasks.ogbench.collecting.collect import Progress
from drol.tasks.ogbench.collecting.recipes import COLLECTABLE

NAME = "pointmaze-medium-stitch-v0"


def test_a_dataset_is_collected_and_the_command_that_trains_on_it_is_shown(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["data", "collect", NAME, "--episodes", "2", "--processes", "1"]) == 0
    printed = capfd.readouterr()
    assert printed.out.splitlines() == [
        f"wrote {NAME}.npz: 400 transitions",
        f"wrote {NAME}-val.npz: 200 transitions",
        f"train on it: drol train pointmaze-medium-stitch-singletask-v0 --dataset {NAME}.npz",
    ]
    assert "3/3 trajectories, " in printed.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{NAME}-val.npz", f"{NAME}.npz"]


def test_ctrl_c_says_what_is_kept(tmp_path, capsys, monkeypatch):
    def interrupted(name, path, report, **_):
        report(Progress(0, 11, 0))
        report(Progress(3, 11, 3003))
        raise KeyboardInterrupt

    monkeypatch.setattr(data_collect, "collect", interrupted)
    assert main(["data", "collect", NAME, "--out", str(tmp_path / "mine.npz")]) == 130
    message = f"stopped; 3 of 11 trajectories are in {tmp_path / 'mine.parts'}, the same command goes on\n"
    assert capsys.readouterr().err.endswith(message)


def test_ctrl_c_in_a_terminal_is_not_a_traceback(tmp_path):
    import os
    import signal
    import time

    # Tests that run in the background of a shell ignore Ctrl-C, and so would this process.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}; import sys; from drol.cli.main import main; sys.exit(main(sys.argv[1:]))"
    out = tmp_path / "mine.npz"
    command = [sys.executable, "-c", code, "data", "collect", NAME, "--processes", "2", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("mine.parts/0*.npz")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        printed = process.communicate()[1]
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert "the same command goes on" in printed


def test_the_help_lists_every_name(capsys):
    with pytest.raises(SystemExit):
        main(["data", "collect", "--help"])
    printed = capsys.readouterr().out
    for name in (*COLLECTABLE, *d4rl.COLLECTABLE):
        assert f"{name} " in printed or f"{name}\n" in printed
    assert all(len(line) <= 120 for line in printed.splitlines())


def test_the_expert_folders_are_passed_on(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(data_collect, "collect", lambda *names, **settings: given.update(settings) or {})
    assert main(["data", "collect", "antsoccer-arena-stitch-v0", "--expert", "a", "--expert", "b", "--seed", "3"]) == 0
    assert [str(path) for path in given["experts"]] == ["a", "b"]
    assert (given["seed"], given["episodes"], given["processes"]) == (3, None, None)


def test_a_dataset_of_d4rl_is_collected_with_an_expert(tmp_path, capsys, monkeypatch):
    pytest.importorskip("gymnasium_robotics")
    pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    layers = {"layers/0/kernel": (45, 4), "layers/0/bias": (4,), "layers/1/kernel": (4, 24), "layers/1/bias": (24,)}
    np.savez("weights.npz", **{name: np.zeros(shape, np.float32) for name, shape in layers.items()})
    made = ["--activation", "tanh", "--output", "none", "--input", "observation", "--out", "pen"]
    assert main(["data", "expert", "weights.npz", *made]) == 0
    assert main(["data", "collect", "pen-expert-v1", "--expert", "pen", "--episodes", "2"]) == 0
    printed = capsys.readouterr()
    assert "train on it: drol train pen-expert-v1 --dataset pen-expert-v1.hdf5" in printed.out
    assert "2/2 trajectories" in printed.err
    assert main(["data", "collect", "pen-expert-v1", "--expert", "pen", "--processes", "2", "--out", "b.hdf5"]) == 2
    assert "is collected in one, leave it out" in capsys.readouterr().err
    assert not (tmp_path / "b.hdf5").exists()


def test_progress_has_a_rate_and_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 100.0, 120.0, 140.0])
    monkeypatch.setattr(data_collect.time, "monotonic", lambda: next(clock))
    with Display() as display:
        display.show(Progress(5, 15, 0, ("000003.npz is damaged and collected again",)))
        display.show(Progress(6, 15, 1001))
        display.show(Progress(15, 15, 10_010))
    assert capsys.readouterr().err.splitlines() == [
        "000003.npz is damaged and collected again",
        "going on after 5 of 15 trajectories",
        "5/15 trajectories",
        "6/15 trajectories, 50 transitions/s, 3 min 0 s left",
        "15/15 trajectories, 250 transitions/s, 0 s left",
    ]


def test_a_file_of_weights_becomes_an_expert(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layers = {"layers/0/kernel": (29, 4), "layers/0/bias": (4,), "mean/kernel": (4, 8), "mean/bias": (8,)}
    np.savez("weights.npz", **{name: np.zeros(shape, np.float32) for name, shape in layers.items()})
    assert data_expert.run(["weights.npz", "--direction-scale", "10", "--out", "walker"]) == 0
    assert capsys.readouterr().out.startswith("wrote walker: 29 - 4 - 8, relu, shown the observation without")
    expert = collecting.read_expert(tmp_path / "walker")
    assert (expert.direction_scale, expert.output) == (10.0, "tanh")
