"""Runs with a damaged folder resume from valid files and report quarantined ones, or fail and keep all files."""

import json
import logging
import shutil
from pathlib import Path

import pytest
from run_folders import assert_same_run, files
from toys import tiny_config, tiny_task

from drol.checkpoints import ARRAYS, MANIFEST, manifest_digest, saved_steps, step_name
from drol.errors import InputError
from drol.runs.directory import RunDirectory
from drol.runs.run import open_run
from drol.training.resuming import lost_rows
from drol.training.train import train


def run(path, **changes):
    return train(tiny_config(**changes), path, tiny_task(None), quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of 12 steps: rows of metrics at 4, 8, 12, evaluations at 0, 6, 12, checkpoints at 9, 12."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path)
    return path


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def without_times(path):
    """The rows of the evaluations, in any order, without what depends on the clock."""
    rows = (row.to_dict() | {"seconds": 0} for row in RunDirectory(path).read_evaluations())
    return sorted(map(str, rows))


def replace_line(path, number, text):
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = text
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("kept", ["rows and policies", "rows", "policies"])
def test_a_run_whose_checkpoints_are_gone_is_refused_and_kept(copy, kept):
    shutil.rmtree(copy / "checkpoints")
    if kept == "rows":
        shutil.rmtree(copy / "policies")
    if kept == "policies":
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            (copy / name).unlink()
    before = files(copy)
    with pytest.raises(InputError) as caught:
        run(copy)
    assert str(caught.value) == (
        f"the run in {copy} has rows or policies up to step 12 and no checkpoint to go on from; all is kept as it is: "
        "to start anew choose another folder or move this folder away"
    )
    assert files(copy) == before
    (copy / "checkpoints").mkdir()
    with pytest.raises(InputError, match="no checkpoint to go on from"):
        run(copy)


def warnings_in(caplog):
    """The warnings since the last call."""
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


def test_a_run_has_a_checkpoint_from_its_start_on(tmp_path, monkeypatch):
    monkeypatch.setattr("drol.training.trainer.Trainer.train", lambda *_: None)
    run(tmp_path / "run")
    assert saved_steps(tmp_path / "run" / "checkpoints") == [0]


def test_what_is_skipped_as_damaged_is_said_though_the_run_is_quiet(copy, whole, caplog):
    (copy / "checkpoints" / step_name(12) / MANIFEST).write_text("[" * 200_000)
    (copy / "checkpoints" / step_name(15)).write_text("a file")
    (copy / "checkpoints" / "²").mkdir()
    (copy / "policies" / "77777").mkdir()
    assert run(copy).damaged
    assert [words.split(" (")[0] for words in warnings_in(caplog)] == [
        f"skipped the checkpoint of step {step}: manifest.json cannot be read" for step in (15, 12)
    ]
    assert sorted(path.name for path in (copy / "forgotten" / step_name(1) / "checkpoints").iterdir()) == [
        step_name(12), step_name(15),
    ]  # fmt: skip
    assert_same_run(copy, whole)
    assert not run(copy).damaged
    assert warnings_in(caplog) == []


BAD = (b'{"step": 7', b"", b"5", b"{}", b"\xff", b"\0" * 500, b'{"step": "x", "seed": 0}')


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_line_of_the_metrics_is_set_aside_and_what_is_lost_is_said(copy, whole, text, caplog):
    expected = (whole / "metrics.jsonl").read_bytes().split(b"\n")
    replace_line(copy / "metrics.jsonl", 3, text)  # step 8 of seed 0
    assert run(copy).damaged
    quarantined, lost = warnings_in(caplog)
    assert quarantined.startswith(f"{copy / 'metrics.jsonl'}: line 3: ")
    assert lost == "metrics.jsonl has lost 1 row that going on does not make again; the first is of step 8, seed 0"
    assert (copy / "metrics.jsonl.bad").read_bytes() == text + b"\n"
    assert (copy / "metrics.jsonl").read_bytes().split(b"\n") == expected[:2] + expected[3:]
    assert not run(copy, steps=15).damaged  # the run resumes


def test_a_bad_line_after_the_checkpoint_is_made_again(copy, whole, caplog):
    shutil.rmtree(copy / "checkpoints" / step_name(12))
    replace_line(copy / "metrics.jsonl", 6, b"\0\0\0")
    assert run(copy).damaged
    assert len(warnings_in(caplog)) == 1
    (copy / "metrics.jsonl.bad").unlink()
    assert_same_run(copy, whole)


def test_an_evaluation_whose_line_is_bad_is_made_again(copy, whole, caplog):
    replace_line(copy / "evaluations.jsonl", 3, b"{}")  # step 6 of seed 0
    assert run(copy).damaged
    assert len(warnings_in(caplog)) == 1
    assert without_times(copy) == without_times(whole)


def test_the_newest_score_is_that_of_the_last_step_though_another_was_made_again(tmp_path):
    path = tmp_path / "run"
    played = train(tiny_config(steps=6), path, tiny_task(), processes=2, quiet=True)
    replace_line(path / "evaluations.jsonl", 1, b"{}")
    again = train(tiny_config(steps=6), path, tiny_task(), processes=2, quiet=True)
    assert [row.step for row in again.evaluations] == [0, 6, 6, 0]
    assert again.scores == played.scores


def test_policies_that_are_missing_are_saved_again_from_the_checkpoint(copy, caplog):
    """A finished run without them was silently accepted, and export said to train it first."""
    name = step_name(12)
    expected = (copy / "policies" / name / ARRAYS).read_bytes()
    shutil.rmtree(copy / "policies")
    with pytest.raises(InputError, match="the same `drol train` command saves those of step 12 again"):
        open_run(copy).policy()
    assert run(copy).damaged
    assert "the policies of step 12 were missing; they were saved again from the checkpoint" in warnings_in(caplog)
    assert saved_steps(copy / "policies") == [12]
    assert (copy / "policies" / name / ARRAYS).read_bytes() == expected
    assert not run(copy).damaged


def test_the_last_row_of_a_finished_run_that_was_cut_off_is_named(copy, caplog):
    path = copy / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert run(copy).damaged
    assert warnings_in(caplog) == [
        f"{path}: line 6: cut off; set aside in metrics.jsonl.bad",
        "metrics.jsonl has lost 1 row that going on does not make again; the first is of step 12, seed 7",
    ]


def test_rows_that_are_lost_for_good_are_counted(copy):
    directory = RunDirectory(copy)
    assert lost_rows(tiny_config(), directory, 12) == []
    shutil.rmtree(copy / "policies" / step_name(6))
    lines = (copy / "evaluations.jsonl").read_bytes().split(b"\n")
    (copy / "evaluations.jsonl").write_bytes(b"\n".join(lines[:2] + lines[4:]))
    assert lost_rows(tiny_config(), directory, 12) == [
        "evaluations.jsonl has lost 2 rows that going on does not make again; the first is of step 6, seed 0"
    ]
    assert lost_rows(tiny_config(), directory, 3) == []


def test_a_checkpoint_of_a_newer_drol_is_refused_and_everything_kept(copy):
    path = copy / "checkpoints" / step_name(12) / MANIFEST
    manifest = json.loads(path.read_text()) | {"format": 2}
    path.write_text(json.dumps(manifest | {"manifest_sha256": manifest_digest(manifest)}))
    before = files(copy)
    with pytest.raises(InputError, match="a newer drol wrote it, so install that one"):
        run(copy)
    assert files(copy) == before


def test_to_look_at_a_damaged_run_names_what_is_wrong_and_changes_nothing(copy, caplog):
    replace_line(copy / "metrics.jsonl", 3, b"nonsense")
    (copy / "checkpoints" / step_name(12) / ARRAYS).write_bytes(b"")
    before = files(copy)
    opened = open_run(copy)
    assert len(opened.metrics) == 5
    words = f"{copy / 'metrics.jsonl'}: line 3: not JSON (Expecting value: line 1 column 1 (char 0))"
    assert warnings_in(caplog) == opened.directory.bad_lines() == [words]
    assert files(copy) == before
