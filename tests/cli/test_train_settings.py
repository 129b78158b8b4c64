"""What `drol train` starts from: defaults, then the settings of the task under the preset, then flags."""

import pytest
from toys import tiny_task

from drol.algorithms import DROLChoice
from drol.algorithms.drol import DROL
from drol.algorithms.iql import IQL
from drol.cli import train as command
from drol.cli.main import main
from drol.cli.train import parse
from drol.errors import InputError
from drol.presets.settings import LAPTOP_RUN, preset_settings
from drol.runs.config import RunConfig
from drol.training import own_data

GIANT = "antmaze-giant-navigate-singletask-v0"


def test_the_task_brings_its_settings():
    config, _ = parse([GIANT])
    algorithm = DROL(bc_weight=0.03, discount=0.995, q_aggregation="min")
    assert config == RunConfig(algorithm, task=GIANT, success_timing="after")


@pytest.mark.parametrize(
    ("preset", "candidates"), [("paper", 16), ("paper-tuned", 1), ("released", 16), ("released-tuned", 1)]
)
def test_presets_choose_the_column(preset, candidates):
    config, _ = parse([GIANT, "--preset", preset])
    assert config.algorithm.num_candidates == candidates
    assert preset_settings(GIANT, DROL, preset).notes == ()


def test_flags_win():
    flags = ["--bc-weight", "7", "--num-candidates", "3", "--steps", "11"]
    config, _ = parse([GIANT, "--preset", "paper-tuned", *flags])
    algorithm = DROL(bc_weight=7.0, num_candidates=3, discount=0.995, q_aggregation="min")
    assert config == RunConfig(algorithm, task=GIANT, steps=11, success_timing="after")


def test_a_run_may_start_from_another():
    assert parse(["--from", "runs/other"])[0].start_from == "runs/other"


def test_d4rl_trains_half_as_long():
    assert parse(["door-human-v1"])[0].steps == 500_000
    assert parse(["door-human-v1", "--steps", "9"])[0].steps == 9


def test_baselines_have_their_own():
    config, _ = parse(["cube-double-play-singletask-v0", "--algorithm", "iql"])
    assert config.algorithm == IQL(alpha=0.3, expectile=0.9, discount=0.99, hidden_sizes=(256,) * 4)


def test_a_task_outside_the_paper_has_the_defaults_and_a_note():
    config, _ = parse([])
    assert config == RunConfig(DROL())
    notes = preset_settings(config.task, DROL, "paper").notes
    assert notes == (f"{config.task} is not a task of the paper; the defaults of drol hold",)


@pytest.mark.parametrize("task", ["pointmaze-medium-navigate-singletask-task1-v0", GIANT])
def test_the_laptop_preset_does_not_depend_on_the_task(task):
    config, _ = parse([task, "--preset", "laptop"])
    assert config == RunConfig(DROL(**DROL.presets["laptop"]), task=task, **LAPTOP_RUN)
    assert preset_settings(task, DROL, "laptop").notes == ()


def test_an_unknown_preset_is_answered_with_those_there_are():
    with pytest.raises(InputError, match=r"'papr'.*paper.*paper-tuned.*released.*released-tuned.*laptop"):
        parse(["--preset", "papr"])


def test_notes_are_lines_on_stderr_before_training(capsys, monkeypatch, tmp_path):
    class Stop(Exception):
        pass

    def stop(*arguments, **options):
        raise Stop

    monkeypatch.setattr(command, "prepare_run", lambda *_: None)
    monkeypatch.setattr(command, "train_prepared", stop)
    task = "antsoccer-arena-navigate-singletask-v0"
    with pytest.raises(Stop):
        main(["train", task, "--algorithm", "fbrac", "--out", str(tmp_path)])
    answer = capsys.readouterr()
    assert answer.out == ""
    first, second = answer.err.splitlines()
    assert first.startswith("drol: note: fbrac: unknown, so at its default unless given: alpha 10.0; ")
    assert second.startswith("drol: note: fbrac: q_aggregation is inferred")


def test_own_data_is_trained_with_the_method_without_a_weight(tmp_path, monkeypatch):
    monkeypatch.setattr("drol.presets.settings.find_source", lambda name: None)
    config, parsed = parse(["files/mine"])
    assert (type(config.algorithm), parsed.preset) == (DROLChoice, "own")
    assert config.standardise_observations
    config, parsed = parse(["files/mine", "--algorithm", "iql", "--preset", "paper"])
    assert (config, parsed.preset) == (RunConfig(IQL(), task="files/mine"), "paper")
    assert parse(["--steps", "9", "files/mine", "--student-candidates", "0"])[0].algorithm.student_candidates == 0
    assert type(parse(["--bc-weight", "3"])[0].algorithm) is DROL


def test_the_choice_for_own_data_is_printed_and_trained(tmp_path, monkeypatch, capsys):
    trained = []
    monkeypatch.setattr("drol.presets.settings.find_source", lambda name: None)
    monkeypatch.setattr(RunConfig, "load_task", lambda self: tiny_task(None, name="files/mine"))
    monkeypatch.setattr(own_data, "seconds_per_update", lambda *_: 0.01)
    monkeypatch.setattr(command, "prepare_run", lambda config, folder, *_: (config, folder))
    monkeypatch.setattr(command, "train_prepared", lambda prepared, *_: trained.append(prepared))
    monkeypatch.setattr(command, "conclude", lambda run: 0)
    assert main(["train", "files/mine", "--out", str(tmp_path / "run")]) == 0
    line = "method drol-choice, networks 3x128, 20,000 updates (about 3 minutes here): chosen from 200 transitions; "
    assert capsys.readouterr().out == f"{line}override with --algorithm, --hidden-sizes, --steps\n"
    config, folder = trained[0]
    assert (config.algorithm.hidden_sizes, config.steps, folder) == ((128,) * 3, 20_000, tmp_path / "run")
    monkeypatch.setattr(own_data, "seconds_per_update", lambda *_: 1.0)
    assert main(["train", "files/mine"]) == 0
    assert main(["train", "files/mine", "--steps", "50"]) == 0
    assert trained[1][1] == trained[2][1]  # the folder does not depend on the speed or the number of updates


def help_text(capsys, *arguments):
    with pytest.raises(SystemExit):
        main(["train", *arguments, "--help"])
    return " ".join(capsys.readouterr().out.split())


def test_help_shows_the_defaults_of_the_preset(capsys):
    assert f"updates of each seed (default: {LAPTOP_RUN['steps']})" in help_text(capsys, "--preset", "laptop")
    assert "updates of each seed (default: 1000000)" in help_text(capsys)
    assert "gamma, discount of the Bellman target (default: 0.995)" in help_text(capsys, GIANT)
