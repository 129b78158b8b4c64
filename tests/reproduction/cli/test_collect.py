"""`drol data collect` and `drol data expert` as a person types them."""

import json
import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from drol.cli.main import main
from drol_reproduction.cli import collect as command
from drol_reproduction.cli import expert as data_expert
from drol_reproduction.collecting import COLLECTORS
from drol_reproduction.collecting.collected import content_sha256
from drol_reproduction.experts.expert import read_expert

NAME = "pointmaze-medium-stitch-v0"


def test_a_dataset_is_collected_and_the_command_that_trains_on_it_is_shown(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        main(["data", "collect", NAME, "--episodes", "2", "--processes", "1", "--record", "results/fingerprints.json"])
        == 0
    )
    printed = capfd.readouterr()
    sums = [content_sha256(tmp_path / f"{name}.npz") for name in (NAME, f"{NAME}-val")]
    assert printed.out.splitlines() == [
        f"wrote {NAME}.npz: 400 transitions, sha256 of the arrays {sums[0]}",
        f"wrote {NAME}-val.npz: 200 transitions, sha256 of the arrays {sums[1]}",
        f"recorded {NAME} in results/fingerprints.json",
        f"train on it: drol train pointmaze-medium-stitch-singletask-v0 --dataset {NAME}.npz",
    ]
    assert "collecting: 3/3 trajectories, " in printed.err
    assert "600 transitions" in printed.err
    assert sorted(path.name for path in tmp_path.glob(f"{NAME}*")) == [
        f"{NAME}-val.npz",
        f"{NAME}.json",
        f"{NAME}.npz",
    ]
    [record] = json.loads((tmp_path / "results" / "fingerprints.json").read_text())
    assert (record["name"], record["seed"], record["episodes"]) == (NAME, 0, 2)
    assert record["files"][f"{NAME}.npz"] == {"transitions": 400, "sha256": sums[0]}
    assert record["command"] == f"drol data collect {NAME} --episodes 2 --seed 0"


def test_a_file_of_fingerprints_that_cannot_be_used_is_rejected_before_anything_is_collected(tmp_path, capsys):
    (tmp_path / "mine.json").write_text("{}")
    assert (
        main(["data", "collect", NAME, "--record", str(tmp_path / "mine.json"), "--out", str(tmp_path / "a.npz")]) == 2
    )
    assert "is not a list of records; choose another file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


@pytest.mark.parametrize(
    ("message", "said"), [("3 of 11 are in mine.parts", "3 of 11 are in mine.parts"), ("", "nothing was written")]
)
def test_ctrl_c_says_what_is_kept(capsys, monkeypatch, message, said):
    def interrupted(name, path, report, **_):
        logging.getLogger("drol_reproduction.collecting").info("000003.npz is damaged and is collected again")
        report(2, 11, "")
        raise KeyboardInterrupt(message) if message else KeyboardInterrupt

    monkeypatch.setattr(command, "collect", interrupted)
    assert main(["data", "collect", NAME]) == 130
    assert capsys.readouterr().err.splitlines() == ["000003.npz is damaged and is collected again", f"stopped; {said}"]


def test_ctrl_c_in_a_terminal_is_not_a_traceback(tmp_path):
    # Tests that run in the background of a shell ignore Ctrl-C, and so would this process.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}; import sys; from drol.cli.main import main; sys.exit(main(sys.argv[1:]))"
    out = tmp_path / "mine.npz"
    command = [sys.executable, "-c", code, "data", "collect", NAME, "--processes", "2", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        # Return whether both processes work; during their imports they have further child processes.
        while len(list(tmp_path.glob("mine.parts/00000[01].npz"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        printed = process.communicate()[1]
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert "the same command resumes" in printed


def test_the_help_lists_every_name(capsys):
    with pytest.raises(SystemExit):
        main(["data", "collect", "--help"])
    printed = capsys.readouterr().out
    for collector in COLLECTORS:
        for name in collector.names:
            assert f"{name} " in printed or f"{name}\n" in printed
    assert all(len(line) <= 120 for line in printed.splitlines())


def test_the_expert_folders_are_passed_on(monkeypatch):
    given = {}
    monkeypatch.setattr(command, "collect", lambda *names, **settings: given.update(settings) or {})
    assert main(["data", "collect", "antmaze-medium-stitch-v0", "--expert", "a", "--expert", "b", "--seed", "3"]) == 0
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
    assert "train on it: drol train pen-expert-v1 --dataset pen-expert-v1-pen.hdf5" in printed.out
    assert "2/2 trajectories" in printed.err
    assert main(["data", "collect", "pen-expert-v1", "--expert", "pen", "--processes", "2", "--out", "b.hdf5"]) == 2
    assert "is collected in one, leave it out" in capsys.readouterr().err
    assert not (tmp_path / "b.hdf5").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cube-single-pley-v0", "unknown dataset 'cube-single-pley-v0'; did you mean cube-single-play-v0?"),
        ("pen-human-v1", "pen-human-v1 cannot be collected; get it by download"),
    ],
)
def test_what_cannot_be_collected_is_one_line(capsys, name, message):
    assert main(["data", "collect", name]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_file_of_weights_becomes_an_expert(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layers = {"layers/0/kernel": (29, 4), "layers/0/bias": (4,), "mean/kernel": (4, 8), "mean/bias": (8,)}
    np.savez("weights.npz", **{name: np.zeros(shape, np.float32) for name, shape in layers.items()})
    assert data_expert.run(["weights.npz", "--direction-scale", "10", "--out", "walker"]) == 0
    assert capsys.readouterr().out.startswith("wrote walker: 29 - 4 - 8, relu, input: the observation without")
    expert = read_expert(tmp_path / "walker")
    assert (expert.direction_scale, expert.output) == (10.0, "tanh")
