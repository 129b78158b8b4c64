"""The command line as a person meets it: help at once, every mistake one line."""

import subprocess
import sys

import pytest

from drol.cli.main import COMMANDS, main


def test_help_lists_every_command_and_imports_no_jax():
    code = "import sys; from drol.cli.main import main; main(['--help']); sys.exit('jax' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in answer.stdout


def test_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "drol 0.1.0\n"


MISTAKES = {
    "unknown command": (["trian"], "unknown command of `drol` 'trian'; did you mean train?"),
    "unknown task": (
        ["train", "pointmaze-medium-navigate-singeltask-task1-v0"],
        "unknown task 'pointmaze-medium-navigate-singeltask-task1-v0'; did you mean",
    ),
    "data that was not imported": (
        ["train", "files/gripper"],
        "unknown task 'files/gripper'; make it with: drol data import FILE... --out gripper",
    ),
    "unknown algorithm": (["train", "--algorithm", "droll"], "unknown algorithm 'droll'; did you mean drol?"),
    "no steps": (["train", "--steps", "0"], "steps is 0; it must be from 1 to"),
    "no candidates": (["train", "--num-candidates", "0"], "num_candidates is 0; it must be from 1 to"),
    "half a candidate": (["train", "--num-candidates", "2.5"], "--num-candidates: '2.5' is not a whole number"),
    "a discount above 1": (["train", "--discount", "1.5"], "discount is 1.5; it must be from 0 to 1"),
    "an infinite rate": (["train", "--learning-rate", "inf"], "learning_rate is inf; it must be from 0 to 1"),
    "no module to import": (["train", "--import"], "--import needs the name of a module"),
    "a module that is not there": (["train", "--import", "no_such"], "there is no module 'no_such' here or installed"),
    "a seed twice": (["train", "--seeds", "1", "2", "1"], "seeds 1 2 1 has duplicates"),
    "a misspelt flag": (["train", "--bc-wieght", "3"], "unknown argument '--bc-wieght'; did you mean --bc-weight?"),
    "a word for a number": (["train", "--bc-weight", "much"], "--bc-weight: 'much' is not a number"),
    "an unknown choice": (["train", "--q-aggregation", "median"], "--q-aggregation: invalid choice: 'median'"),
    "a missing dataset": (["train", "--dataset", "no/such.npz"], "dataset file no/such.npz does not exist"),
    "not a run": (["evaluate", "no/such"], "no/such is not a run folder"),
    "not a run to report": (["report", "no/such"], "no/such is not a run folder"),
    "an unknown dataset": (["data", "collect", "antmaze-x"], "unknown dataset 'antmaze-x'; did you mean antmaze-"),
    "an unknown data command": (["data", "colect"], "unknown command of `drol data` 'colect'; did you mean collect?"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("drol: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_dataset_is_refused_before_a_run_folder_is_made(capsys, tmp_path):
    path = tmp_path / "short.npz"
    path.write_bytes(b"PK\x03\x04" + bytes(50))
    out = tmp_path / "run"
    assert main(["train", "--dataset", str(path), "--out", str(out)]) == 2
    assert f"dataset file {path} is truncated or damaged" in capsys.readouterr().err
    assert not out.exists()


def test_an_unwritable_run_folder_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "run"
    assert main(["train", "--preset", "laptop", "--out", str(out)]) == 2
    assert f"cannot write to the run folder {out}" in capsys.readouterr().err


def test_a_used_folder_is_refused_and_left_alone(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "--preset", "laptop", "--out", str(tmp_path)]) == 2
    assert "has files but no config.json" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_every_command_explains_itself(capsys):
    for name in COMMANDS:
        try:
            code = main([name, "--help"])
        except SystemExit as stop:  # argparse leaves this way after printing help
            code = stop.code
        assert code == 0
        assert capsys.readouterr().out.startswith("usage: drol ")
