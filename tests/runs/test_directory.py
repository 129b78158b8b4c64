import contextlib
import fcntl
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from toys import tiny_config

from drol.checkpoints import save_tree, saved_steps, step_name
from drol.errors import InputError
from drol.runs import record_files
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow, MetricsRow
from drol.tasks.base import Episode

CONTENT = {"run": tiny_config().to_dict(), "dataset_fingerprint": "ab", "circumstances": {"cores": 2}}


@pytest.fixture
def directory(tmp_path):
    """A run with rows at the steps 0, 5 and 10 and checkpoints at 4, 8 and 12."""
    directory = RunDirectory(tmp_path / "run")
    with directory.locked():
        directory.write_config(CONTENT)
        for step in (0, 5, 10):
            directory.log_metrics(MetricsRow(step, 0, {"loss": step / 2}))
            directory.log_evaluation(EvaluationRow(step, 0, 1.0))
        for step in (4, 8, 12):
            save_tree(directory.checkpoints / step_name(step), {"a": np.ones(2)}, {})
        for step in (0, 5, 10):
            save_tree(directory.policies / step_name(step), {"a": np.ones(2)}, {})
    return directory


def steps(rows):
    return [row.step for row in rows]


def test_the_scores_of_a_step_are_found_from_the_end(directory):
    directory.log_evaluation(EvaluationRow(10, 7, 3.0))
    directory.log_evaluation(EvaluationRow(15, 0))
    assert directory.scores_at(10, 2) == {0: 1.0, 7: 3.0}
    assert directory.scores_at(10, 1) == {7: 3.0}
    assert directory.scores_at(15, 2) == {0: None}
    assert directory.scores_at(11, 2) == {}
    for broken in (b"broken\n", b'"\xff"\n', b"[" * 100_000 + b"\n"):
        with (directory.path / "evaluations.jsonl").open("ab") as file:
            file.write(broken)
        with pytest.raises(InputError, match=r"evaluations\.jsonl: "):
            directory.scores_at(15, 2)


def test_what_is_written_is_read_back(directory):
    assert directory.exists
    assert directory.read_config() == {"format": 1, **CONTENT}
    assert directory.read_metrics() == [MetricsRow(step, 0, {"loss": step / 2}) for step in (0, 5, 10)]
    assert directory.read_evaluations() == [EvaluationRow(step, 0, 1.0) for step in (0, 5, 10)]
    names = {path.name for path in directory.path.iterdir()}
    assert names == {".lock", "config.json", "metrics.jsonl", "evaluations.jsonl", "checkpoints", "policies"}


def test_rewinding_forgets_what_came_after_the_step(directory):
    (directory.checkpoints / ".000000016.partial").mkdir()
    (directory.path / ".metrics.jsonl.123.partial").write_text("left by a kill")
    directory.rewind(8)
    assert not list(directory.path.glob("**/.*.partial"))
    assert steps(directory.read_metrics()) == [0, 5]
    assert steps(directory.read_evaluations()) == [0, 5]
    assert [path.name for path in sorted(directory.checkpoints.iterdir())] == [step_name(4), step_name(8)]
    assert saved_steps(directory.policies) == [0, 5]


def test_what_a_rewind_forgets_is_kept_in_a_place_of_its_own(directory):
    (directory.checkpoints / step_name(9)).write_text("a file in the place of a checkpoint")
    policy = (directory.policies / step_name(10) / "arrays.safetensors").read_bytes()
    lines = (directory.path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    directory.log_extra_evaluation(EvaluationRow(10, 0, 5.0))
    directory.divergence.write_text("{}")
    directory.rewind(8)
    place = directory.forgotten / step_name(1)
    assert (place / "policies" / step_name(10) / "arrays.safetensors").read_bytes() == policy
    assert (place / "metrics.jsonl").read_bytes() == lines[-1]
    assert sorted(str(path.relative_to(place)) for path in place.glob("*")) == [
        "checkpoints", "diverged.json", "evaluations.jsonl", "extra_evaluations.jsonl", "metrics.jsonl", "policies",
    ]  # fmt: skip
    assert sorted(path.name for path in (place / "checkpoints").iterdir()) == [step_name(9), step_name(12)]
    directory.rewind(8)
    assert [path.name for path in directory.forgotten.iterdir()] == [step_name(1)]  # nothing was left to forget
    directory.rewind(4)
    assert steps(directory.read_metrics()) == [0]
    assert sorted(path.name for path in directory.forgotten.iterdir()) == [step_name(1), step_name(2)]


def test_only_what_the_last_rewinds_forgot_is_kept(directory, monkeypatch):
    monkeypatch.setattr("drol.runs.directory.KEPT_FORGOTTEN", 2)
    for _ in range(4):
        directory.log_metrics(MetricsRow(11, 0, {}))
        directory.rewind(10)
    assert saved_steps(directory.forgotten) == [3, 4]


@pytest.mark.parametrize("function", ["write_whole", "rename"])
def test_a_rewind_that_is_killed_anywhere_loses_nothing_and_is_finished_by_the_next(directory, monkeypatch, function):
    """Every row and every policy is in the run or in a place of what was forgotten, at every moment."""

    class Killed(BaseException):
        pass

    def everything():
        rows = [path.read_text().splitlines() for path in directory.path.rglob("metrics.jsonl")]
        return {line for each in rows for line in each}, {path.name for path in directory.path.rglob("policies/0*")}

    before = everything()
    owner = Path if function == "rename" else record_files
    call = getattr(owner, function)
    for moment in range(4):
        calls = []

        def dying(*arguments, calls=calls, moment=moment):
            calls.append(arguments)
            if len(calls) == moment + 1:
                raise Killed
            return call(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, function, dying)
            with contextlib.suppress(Killed):
                directory.rewind(4)
        assert everything() == before
    directory.rewind(4)
    assert everything() == before
    assert steps(directory.read_metrics()) == [0]
    assert saved_steps(directory.policies) == [0]


def test_odd_things_in_the_folder_are_left_alone_by_a_rewind(directory):
    for name in ("checkpoints/²", "policies/77777", "policies/notes.txt", "forgotten"):
        (directory.path / name).write_text("mine") if "." in name else (directory.path / name).mkdir()
    (directory.policies / ".x.partial").write_text("a file")
    directory.rewind(4)
    for name in ("checkpoints/²", "policies/77777", "policies/notes.txt"):
        assert (directory.path / name).exists()
    assert saved_steps(directory.policies) == [0]


# Three processes that record ten evaluations each, at the same time.
THREE = """
import os, sys
from pathlib import Path
from drol.runs import record_files
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow

children = []
for number in (10, 20, 30):
    children.append(os.fork())
    if children[-1] == 0:
        for count in range(number, number + 10):
            RunDirectory(Path(sys.argv[1])).log_extra_evaluation(EvaluationRow(5, 0, 1.0, best_of=count))
        os._exit(0)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_evaluations_of_three_processes_at_once_are_all_recorded(directory):
    with directory.locked():  # as a training in the same folder holds it
        command = [sys.executable, "-W", "ignore", "-c", THREE, str(directory.path)]
        assert subprocess.run(command, check=False).returncode == 0
    assert sorted(row.best_of for row in directory.read_extra_evaluations()) == list(range(10, 40))


def test_a_rewind_waits_for_an_evaluation_that_writes(directory):
    rewinding = threading.Thread(target=directory.rewind, args=(4,))
    with directory.evaluations_locked():
        rewinding.start()
        rewinding.join(0.2)
        assert rewinding.is_alive()
        assert steps(directory.read_metrics()) == [0, 5, 10]
    rewinding.join()
    assert steps(directory.read_metrics()) == [0]


def test_rewinding_to_zero_keeps_step_zero(directory):
    directory.rewind(0)
    assert steps(directory.read_metrics()) == [0]
    assert saved_steps(directory.policies) == [0]
    assert saved_steps(directory.checkpoints) == []


def test_rewinding_an_empty_run_writes_no_rows(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_config(CONTENT)
    assert directory.rewind(0) == 0
    assert directory.read_metrics() == []
    assert directory.read_evaluations() == []
    assert not (tmp_path / "forgotten").exists()


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_last_line_that_was_cut_off_is_left_out(directory, cut):
    path = directory.path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert steps(directory.read_metrics()) == [0, 5]
    directory.rewind(8)
    directory.log_metrics(MetricsRow(8, 0, {}))
    assert steps(directory.read_metrics()) == [0, 5, 8]
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 5, 8]


def test_only_the_two_newest_checkpoints_are_kept(directory):
    directory.drop_old_checkpoints()
    assert saved_steps(directory.checkpoints) == [8, 12]
    directory.drop_old_checkpoints()
    assert saved_steps(directory.checkpoints) == [8, 12]
    assert saved_steps(directory.policies) == [0, 5, 10]


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError) as caught, RunDirectory(tmp_path).locked():
        pass
    assert str(caught.value) == (
        f"the folder {tmp_path} has files but no config.json, so it is not a run; choose another folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_and_one_left_by_an_early_kill_are_accepted(tmp_path):
    for names in ((), (".lock",), (".lock", ".config.json.123.partial")):
        for name in names:
            (tmp_path / name).write_text("")
        with RunDirectory(tmp_path).locked():
            pass


@pytest.mark.parametrize("below", ["run", "run/deeper"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / below
    with pytest.raises(InputError) as caught, RunDirectory(path).locked():
        pass
    assert str(caught.value) == f"cannot write to the run folder {path} (Not a directory); choose another folder"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match=r"cannot write to the run folder .* \(File exists\)"),
        RunDirectory(tmp_path / "file").locked(),
    ):
        pass


def test_a_second_writer_is_refused_until_the_first_is_done(directory):
    other = RunDirectory(directory.path)
    with directory.locked():
        with pytest.raises(InputError) as caught, other.locked():
            pass
        assert str(caught.value) == (
            f"another process is writing to the run folder {directory.path}; wait or choose another folder"
        )
    with other.locked(), (directory.path / ".lock").open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_lock_is_released_by_an_error(directory):
    with pytest.raises(RuntimeError), directory.locked():
        raise RuntimeError
    with RunDirectory(directory.path).locked():
        pass


def test_a_configuration_that_is_absent_or_not_json_is_one_line(directory, tmp_path):
    with pytest.raises(InputError) as caught:
        RunDirectory(tmp_path / "absent").read_config()
    assert str(caught.value) == f"{tmp_path / 'absent'} is not a run folder: it has no config.json"
    (directory.path / "config.json").write_text('{"run": ')
    with pytest.raises(InputError, match=r"config\.json: not JSON") as caught:
        directory.read_config()
    assert "\n" not in str(caught.value)


def test_trajectories_of_any_lengths_come_back(directory):
    positions = [np.random.default_rng(0).normal(size=(length, 2)).astype(np.float32) for length in (3, 1, 7)]
    directory.save_trajectories(5, 1, positions)
    found = directory.read_trajectories(5, 1)
    assert len(found) == 3
    for ours, theirs in zip(found, positions, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert directory.read_trajectories(5, 0) is None
    assert directory.read_trajectories(10, 1) is None
    assert [path.name for path in (directory.path / "trajectories").iterdir()] == ["000000005-seed1.npz"]


@pytest.mark.parametrize("damage", ["cut", "empty", "other arrays", "lengths", "bytes"])
def test_trajectories_that_are_damaged_are_one_line(directory, damage):
    directory.save_trajectories(5, 1, [np.zeros((3, 2)), np.zeros((4, 2))])
    path = directory.trajectories / f"{step_name(5)}-seed1.npz"
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[:-40])
        case "empty":
            path.write_bytes(b"")
        case "other arrays":
            np.savez(path, positions=np.zeros(7), lengths=[3, 4])
        case "lengths":
            np.savez(path, positions=np.zeros((7, 2)), lengths=[3, 9])
        case "bytes":
            path.write_bytes(content[:60] + b"\0" * 40 + content[100:])
    with pytest.raises(InputError, match=str(path)):
        directory.read_trajectories(5, 1)


def test_fewer_episodes_take_the_place_of_more_only_if_that_is_asked_for(directory):
    def row(count, score):
        return EvaluationRow(5, 0, score, tuple(Episode(seed, 0.0, 1, True) for seed in range(count)), best_of=1)

    for count, score, replace, expected in ((3, 10.0, False, 10.0), (2, 20.0, False, 10.0), (3, 30.0, False, 30.0),
                                            (2, 40.0, True, 40.0), (4, 50.0, False, 50.0)):  # fmt: skip
        directory.log_extra_evaluation(row(count, score), replace)
        assert [row.score for row in directory.read_extra_evaluations()] == [expected]


def test_an_extra_evaluation_replaces_an_earlier_one_of_the_same_kind(directory):
    for step, best_of, score in ((5, 1, 10.0), (5, 4, 20.0), (5, 1, 30.0), (10, 1, 40.0)):
        directory.log_extra_evaluation(EvaluationRow(step, 0, score, best_of=best_of))
    assert [row.score for row in directory.read_extra_evaluations()] == [20.0, 30.0, 40.0]
    directory.rewind(8)
    assert [row.score for row in directory.read_extra_evaluations()] == [20.0, 30.0]
    assert len(directory.read_evaluations()) == 2  # those of the training are kept apart
