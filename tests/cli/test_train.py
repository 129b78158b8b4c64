"""`drol train` and the commands that follow it, end to end on the embedded maze with tiny networks."""

import dataclasses
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest

import drol
from drol.cli.main import main
from drol.cli.train import conclude, parse
from drol.errors import InputError

NETWORKS = ["--hidden-sizes", "16", "16", "--batch-size", "32", "--num-candidates", "2"]
TINY = ["--preset", "laptop", *NETWORKS, "--evaluation-episodes", "1"]
INTERVALS = ["--log-interval", "20", "--evaluation-interval", "40", "--checkpoint-interval", "20"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    assert (
        main(["train", *TINY, *INTERVALS, "--steps", "40", "--seeds", "0", "3", "--out", str(folder), "--quiet"]) == 0
    )
    return folder


def test_flags_are_made_from_the_fields_of_the_algorithm():
    config, _ = parse(["--bc-weight", "3", "--hidden-sizes", "8", "8", "--no-normalise-q", "--seeds", "4", "5"])
    assert config.algorithm.bc_weight == 3
    assert config.algorithm.hidden_sizes == (8, 8)
    assert config.algorithm.normalise_q is False
    assert config.seeds == (4, 5)


def test_defaults_are_the_papers_and_the_laptop_preset_is_small():
    paper, _ = parse([])
    assert (paper.steps, paper.algorithm.hidden_sizes, paper.standardise_observations) == (10**6, (512,) * 4, False)
    laptop, _ = parse(["--preset", "laptop"])
    assert laptop.algorithm.hidden_sizes == (128, 128, 128)
    assert laptop.standardise_observations
    flagged, _ = parse(["--preset", "laptop", "--bc-weight", "7"])
    assert flagged.algorithm == dataclasses.replace(laptop.algorithm, bc_weight=7.0)
    with pytest.raises(InputError, match="--alpha is a hyperparameter of "):  # DROL has no such weight
        parse(["--preset", "laptop", "--alpha", "7"])
    equation, _ = parse(["--preset", "laptop", "--algorithm", "drol-equation", "--alpha", "7"])
    assert equation.algorithm.alpha == 7


def test_where_evaluations_happen_is_no_part_of_the_run():
    foreground, _ = parse(["--preset", "laptop"])
    background, parsed = parse(["--preset", "laptop", "--background-evaluation"])
    assert parsed.background_evaluation
    assert background.folder_name() == foreground.folder_name()


def test_a_run_folder_has_everything(run_folder):
    names = {path.name for path in run_folder.iterdir()}
    assert {"config.json", "metrics.jsonl", "evaluations.jsonl", "checkpoints", "policies", "trajectories"} <= names
    config = json.loads((run_folder / "config.json").read_text())
    assert {"python", "jax", "mujoco", "ogbench", "cores"} <= config["circumstances"].keys()
    assert len(config["dataset_fingerprint"]) == 64
    rows = [json.loads(line) for line in (run_folder / "evaluations.jsonl").read_text().splitlines()]
    assert [(row["step"], row["seed"]) for row in rows] == [(step, seed) for step in (0, 40) for seed in (0, 3)]
    assert all({"seed", "return", "length", "success"} <= row["episodes"][0].keys() for row in rows)


def test_the_same_command_again_says_what_is_there(run_folder, capsys):
    before = (run_folder / "metrics.jsonl").read_bytes()
    assert main(["train", *TINY, *INTERVALS, "--steps", "40", "--seeds", "0", "3", "--out", str(run_folder)]) == 0
    assert "score after 40 updates" in capsys.readouterr().out
    assert (run_folder / "metrics.jsonl").read_bytes() == before


def test_another_run_in_the_same_folder_is_refused(run_folder, capsys):
    before = (run_folder / "config.json").read_bytes()
    assert main(["train", *TINY, *INTERVALS, "--steps", "40", "--seeds", "0", "--out", str(run_folder)]) == 2
    assert "holds another run (seeds was [0, 3], now [0])" in capsys.readouterr().err
    assert (run_folder / "config.json").read_bytes() == before


def test_devices_that_are_not_there_are_refused(tmp_path, capsys):
    assert main(["train", *TINY, "--devices", "9", "--out", str(tmp_path / "run")]) == 2
    assert "devices is 9; this machine has 1 device" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_evaluate_lets_the_critic_choose_and_records_it(run_folder, capsys):
    assert main(["evaluate", str(run_folder), "--best-of", "4", "--episodes", "1"]) == 0
    assert "seed 3, step 40, best of 4" in capsys.readouterr().out
    rows = [json.loads(line) for line in (run_folder / "extra_evaluations.jsonl").read_text().splitlines()]
    assert [(row["seed"], row["best_of"], len(row["episodes"])) for row in rows] == [(0, 4, 1), (3, 4, 1)]


def test_evaluate_names_the_steps_it_has(run_folder, capsys):
    assert main(["evaluate", str(run_folder), "--step", "7"]) == 2
    assert "no policy of step 7" in capsys.readouterr().err
    assert main(["evaluate", str(run_folder), "--best-of", "0"]) == 2


def test_the_report_is_one_page_with_its_figures_inside(run_folder, capsys):
    assert main(["report", str(run_folder)]) == 0
    page = (run_folder / "report.html").read_text()
    for word in ("Learning", "In the maze", "Candidates and their cells", "Metrics", "95% interval"):
        assert word in page
    assert "src=" not in page
    assert 'href="http' not in page


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "drol.cli.main", "train", *TINY, "--out", str(out)]
    process = subprocess.Popen(
        [*command, "--steps", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (out / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "the same command resumes from step" in printed
    assert "Traceback" not in errors
    assert any((out / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("finished", "words"),
    [(False, "resumes from step 5 of 10"), (True, "runs the missing evaluations")],
)
def test_a_run_that_a_signal_stopped_says_what_is_left_and_returns_its_number(capsys, finished, words):
    stopped = types.SimpleNamespace(
        stopped_by=signal.SIGUSR1,
        finished=finished,
        step=5,
        config=types.SimpleNamespace(total_steps=10),
        path="runs/x",
    )
    assert conclude(stopped) == 128 + signal.SIGUSR1
    assert capsys.readouterr().out == f"stopped; the same command {words}, saved in runs/x\n"


def test_a_dataset_without_a_name_is_refused(capsys):
    for flag, name in (("--dataset", "dataset"), ("--from", "start_from")):
        assert main(["train", "--preset", "laptop", flag, ""]) == 2
        assert capsys.readouterr().err.startswith("drol: error: empty value for an argument (unset shell variable?)")
        with pytest.raises(InputError, match=f"{name} is ''; it must name a file or folder, or be left out"):
            drol.settings(preset="laptop", **{name: ""})


def test_damage_is_told_by_the_exit_code_even_if_the_command_is_quiet(run_folder, tmp_path, capsys):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    (folder / "checkpoints" / "000000040" / "arrays.safetensors").write_bytes(b"")
    command = ["train", *TINY, *INTERVALS, "--steps", "40", "--seeds", "0", "3", "--out", str(folder), "--quiet"]
    assert main(command) == 3
    noted = "drol: warning: skipped the checkpoint of step 40: arrays.safetensors does not match its checksum\n"
    assert capsys.readouterr().err == noted
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("nonsense\n")
    assert main(["report", str(folder)]) == 3
    assert capsys.readouterr().err.count(f"drol: warning: {folder / 'metrics.jsonl'}: line 5: not JSON") == 1


def test_a_run_that_diverges_has_its_own_exit_code_and_says_the_very_command_that_tries_again(tmp_path, capsys):
    folder = tmp_path / "run"
    networks = [*NETWORKS, "--evaluation-episodes", "1", "--processes", "1", "--quiet", "--bc-weight", "1e30"]
    command = ["train", "--preset=laptop", *networks, "--log-interval", "50", "--checkpoint-interval", "1"]
    command += ["--evaluation-interval=60", "--steps", "60", "--learning-rate", "0.9", "--out", str(folder)]
    assert main(command) == 4
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    again = shlex.split(message[message.index("drol train") :])
    assert (folder / "diverged.json").is_file()
    (config, parsed), (diverged, _) = parse(again[2:]), parse(command[1:])
    slower = dataclasses.replace(diverged.algorithm, learning_rate=0.3)
    assert config == dataclasses.replace(diverged, algorithm=slower, start_from=str(folder))
    assert parsed.out == tmp_path / "run-slower"
