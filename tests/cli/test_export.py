import json

import pytest
from toys import saved_run, tiny_config, tiny_task

from drol.cli.main import main
from drol.evaluation.support import support_warning
from drol.export import export
from drol.runs.config import RunConfig


@pytest.fixture
def run(tmp_path, monkeypatch):
    saved_run(tmp_path / "run", tiny_config(), (6, 12))
    monkeypatch.setattr(RunConfig, "load_task", lambda self: tiny_task())
    return tmp_path / "run"


def test_export_says_how_far_each_output_is_from_the_policy(run, tmp_path, capsys):
    out = tmp_path / "bundle"
    assert main(["export", str(run), "--out", str(out), "--step", "6", "--seed", "7", "--best-of", "2", "--onnx"]) == 0
    printed = capsys.readouterr().out
    assert "bundle     difference from the trained policy:" in printed
    assert "onnx       difference from the trained policy:" in printed
    assert sorted(path.name for path in out.iterdir()) == [
        "bundle.json", "policy.onnx", "test.safetensors", "weights.safetensors",
    ]  # fmt: skip
    found = json.loads((out / "bundle.json").read_text())
    assert (found["step"], found["seed"], found["sampler"]["best_of"]) == (6, 7, 2)
    assert main(["export", str(run), "--out", str(out)]) == 2
    assert "add --replace" in capsys.readouterr().err
    assert main(["export", str(run), "--out", str(out), "--replace"]) == 0


def test_the_folder_that_one_is_in_can_be_written(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "bundle").mkdir()
    monkeypatch.chdir(tmp_path / "bundle")
    assert main(["export", str(run), "--out", "."]) == 0
    assert capsys.readouterr().out.endswith("wrote .\n")
    assert (tmp_path / "bundle" / "bundle.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "run"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export", "RUN"], "the following arguments are required: --out"),
        (["export", "RUN", "--out", "x", "--step", "5"], "no policy of step 5"),
        (["export", "RUN", "--out", "x", "--best-of", "0"], "best_of is 0"),
        (["export", "nowhere", "--out", "x"], "nowhere"),
        (["serve", "nowhere"], "bundle.json is missing"),
        (["serve", "RUN", "--host", "0.0.0.0"], "bundle.json is missing"),
    ],
)
def test_mistakes_are_one_line(run, arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([str(run) if word == "RUN" else word for word in arguments]) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_policy_that_leaves_data_without_a_simulator_is_reported(run, tmp_path, capsys, monkeypatch):
    assert main(["export", str(run), "--out", str(tmp_path / "simulated")]) == 0
    assert "warning" not in capsys.readouterr().out
    monkeypatch.setattr(RunConfig, "load_task", lambda self: tiny_task(None))
    monkeypatch.setattr(export, "offline_scores", lambda *_: {"outside_support": 0.87})
    assert main(["export", str(run), "--out", str(tmp_path / "bundle")]) == 0
    assert capsys.readouterr().out.endswith(f"warning: {support_warning(0.87)}\n")
