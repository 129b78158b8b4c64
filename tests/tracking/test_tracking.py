"""Trackers mirror the rows of a run, each once, and can do it no harm."""

import contextlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from made_sweeps import made_sweep
from run_folders import assert_same_run
from toys import tiny_config, tiny_task

import drol.tracking
from drol.errors import InputError
from drol.planning.run_file import RunFile
from drol.runs.directory import EVALUATIONS, METRICS, RunDirectory
from drol.runs.records import EvaluationRow, MetricsRow
from drol.sweeps.sweep_runs import planned_runs
from drol.tasks.base import Episode
from drol.tracking import check_tracker, mirrored
from drol.tracking.mirror import STATE, MirroredRun
from drol.training.train import train

ROOT = Path(__file__).parents[2]


@pytest.fixture
def directory(tmp_path):
    made = RunDirectory(tmp_path / "run")
    (made.tracking / "kept").mkdir(parents=True)
    made.write_config({"run": tiny_config().to_dict(), "dataset_fingerprint": "ab", "circumstances": {}})
    return made


class Kept(list):
    """A mirror that keeps what it gets."""

    flushed = 0

    def write(self, step, values):
        self.append((step, values))

    def flush(self):
        self.flushed = len(self)

    def close(self):
        pass


def test_each_row_is_mirrored_once_whatever_is_cut_and_made_again(directory):
    mirror = Kept()
    mirrored_run = MirroredRun(directory, "kept")
    mirrored_run.mirror(mirror)
    assert mirror == []
    directory.log_metrics(MetricsRow(4, 0, {"loss": 1.0}))
    mirrored_run.mirror(mirror)
    directory.log_metrics(MetricsRow(4, 7, {"loss": 2.0}))  # the other seed, after a look
    directory.log_metrics(MetricsRow(8, 0, {"loss": 3.0}))
    directory.log_evaluation(EvaluationRow(6, 0, 50.0, (Episode(0, -1.0, 3, True),)))
    mirrored_run.mirror(mirror)
    directory.rewind(4)  # the run was killed; it makes the same rows again
    again = MirroredRun(directory, "kept")
    assert again.identity == mirrored_run.identity
    directory.log_metrics(MetricsRow(8, 0, {"loss": 3.0}))
    directory.log_metrics(MetricsRow(8, 7, {"loss": 4.0}))
    again.mirror(mirror)
    assert mirror.flushed == len(mirror)  # nothing is called mirrored that a kill could take away
    losses = [each for each in mirror if any(name.startswith("train/loss") for name in each[1])]
    assert losses == [
        (4, {"train/loss/seed-0": 1.0}),
        (4, {"train/loss/seed-7": 2.0}),
        (8, {"train/loss/seed-0": 3.0}),
        (8, {"train/loss/seed-7": 4.0}),
    ]
    ((step, values),) = [(step, values) for step, values in mirror if (step, values) not in losses]
    assert step == 6
    assert values["evaluation/score/seed-0"] == 50.0


def test_only_what_was_added_is_read_and_a_row_that_is_cut_off_waits(directory):
    mirror, run = Kept(), MirroredRun(directory, "kept")
    path = directory.path / METRICS
    directory.log_metrics(MetricsRow(4, 0, {"loss": 1.0}))
    run.mirror(mirror)
    whole = path.read_text()
    path.write_text(whole + whole.replace("4", "8", 1)[:12])
    run.mirror(mirror)
    assert [step for step, _ in mirror] == [4]
    path.write_text("x" * len(whole[:-1]) + "\n" + whole.replace("4", "8", 1))  # the first line is not read again
    run.mirror(mirror)
    assert [step for step, _ in mirror] == [4, 8]
    assert run.files[METRICS].bad == 0


def test_a_state_that_cannot_be_read_begins_anew(directory):
    (directory.tracking / "kept" / STATE).write_text("{")
    assert MirroredRun(directory, "kept").seen == {}


def events(folder: Path) -> list[tuple[str, int, float]]:
    """Read the numbers of TensorBoard's files: records of a length, a checksum, an event, a checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.rglob("events.out*")):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + length])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            data = data[16 + length :]
    return found


def test_a_run_that_is_resumed_continues_in_tensorboard(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT / 'runtime' / 'src'}")
    task = tiny_task(None)
    train(tiny_config(steps=4), tmp_path / "run", task, quiet=True, track="tensorboard")
    run = train(tiny_config(), tmp_path / "run", task, quiet=True, track="tensorboard")
    found = events(tmp_path / "run" / "tracking" / "tensorboard" / "events")
    logged = [(f"train/{name}/seed-{row.seed}", row.step) for row in run.metrics for name in row.values]
    assert sorted((name, step) for name, step, _ in found if name.startswith("train/")) == sorted(logged)
    values = {(name, step): value for name, step, value in found}
    for row in run.evaluations:
        error = row.columns()["offline/single_sample_error"]
        assert values[f"evaluation/offline/single_sample_error/seed-{row.seed}", row.step] == pytest.approx(error)
    train(tiny_config(steps=4), tmp_path / "alone", task, quiet=True)
    train(tiny_config(), tmp_path / "alone", task, quiet=True)  # without a tracker
    for path in sorted((tmp_path / "run" / "tracking").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert_same_run(tmp_path / "run", tmp_path / "alone")


def follow(directory, tracker, step):
    """Mirror one more row, without any network; the run is known to the tracker by a number already."""
    pytest.importorskip(tracker, reason=f"{tracker} is not installed")
    folder = directory.tracking / tracker
    folder.mkdir(exist_ok=True)
    (folder / STATE).write_text(json.dumps({"run": "12345678", "seen": {f"{METRICS} 0": step - 1}}))
    directory.log_metrics(MetricsRow(step, 0, {"loss": 1.0}))
    environment = os.environ | {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "TRACKIO_DIR": str(folder), "HOME": str(folder)}
    command = [sys.executable, "-m", "drol.tracking.mirror", str(directory.path), tracker]
    answer = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert json.loads((folder / STATE).read_text())["seen"] == {f"{METRICS} 0": step}
    return folder


def test_weights_and_biases_keeps_a_run_here(directory):
    (written,) = follow(directory, "wandb", 4).glob("wandb/offline-run-*-12345678/run-12345678.wandb")
    assert b"train/loss/seed-0" in written.read_bytes()


def test_a_run_continues_in_trackio(directory):
    for step in (4, 8):
        folder = follow(directory, "trackio", step)
    (database,) = folder.glob("drol*.db")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("select run_name, step from metrics order by step").fetchall()
    assert rows == [("run-12345678", 4), ("run-12345678", 8)]


def test_a_tracker_that_breaks_or_hangs_is_one_warning(directory, monkeypatch, caplog):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    with mirrored(directory, "nowhere", lambda: False):
        pass
    assert len(caplog.messages) == 1
    assert "nowhere does not have all of this run (ModuleNotFoundError: No module named" in caplog.messages[0]
    popen = subprocess.Popen
    monkeypatch.setattr(drol.tracking.subprocess, "Popen", lambda _, **more: popen(["sleep", "60"], **more))
    monkeypatch.setattr(drol.tracking, "STOP_SECONDS", 0.1)
    with mirrored(directory, "slow", lambda: True):
        pass
    assert "slow took more than 0 s to end; the next start of the run resumes it" in caplog.messages[1]
    (directory.tracking / "file").write_text("")
    with mirrored(directory, "file", lambda: True):
        pass
    assert "this run is not sent to file" in caplog.messages[2]


def test_the_file_of_a_run_of_a_sweep_names_the_tracker(tmp_path):
    (run, _), *_ = planned_runs(made_sweep(tmp_path))
    for track in ("wandb", None):
        assert RunFile.read(Path(run.job(tmp_path, track=track).arguments[1])).track == track


def test_a_mistake_is_one_line(monkeypatch, tmp_path):
    with pytest.raises(InputError, match="unknown tracker 'wandbb'; did you mean wandb"):
        check_tracker("wandbb")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match="needs tensorboardX; install it with: pip install 'drol\\[tensorboard\\]'"):
        train(tiny_config(), tmp_path / "run", tiny_task(None), track="tensorboard")
    assert not (tmp_path / "run").exists()
    assert {METRICS, EVALUATIONS} <= {*drol.tracking.mirror.FILES}
