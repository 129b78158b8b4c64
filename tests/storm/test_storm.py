"""The storm, small and with a fixed seed; and that it notices what it is there to notice."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from toys import TESTS

from drol_reproduction.documents import START, fill_blocks
from storm.run_state import differences, last_step, progress, saved_steps
from storm.tally import Tally, add_storms, storm_tables

ROOT = TESTS.parent


def storm(folder, *arguments):
    command = [sys.executable, "-m", "storm", "--folder", str(folder), "--out", str(folder / "storm.json"), *arguments]
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=280)


@pytest.fixture(scope="module")
def weathered(tmp_path_factory):
    """The answer of a small storm, and its folder."""
    folder = tmp_path_factory.mktemp("storm")
    return storm(folder, "--trials", "1", "--seed", "5", "--configurations", "bc*"), folder


@pytest.mark.slow
def test_runs_that_are_killed_and_damaged_end_as_if_they_had_not_been(weathered):
    answer, folder = weathered
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = json.loads((folder / "storm.json").read_text())
    assert sum(row["injected"] for row in found["faults"]) >= 8
    assert sum(row["injected"] for row in found["faults"] if row["fault"].startswith("kill")) >= 5
    for row in found["faults"]:
        assert row["survived"] == row["injected"], row
        assert row["lost_more"] == row["wrong"] == 0, row
    assert [each["runs"] for each in found["runs"]] == [1]
    assert not [each.name for each in folder.iterdir() if each.name.startswith("5-")]  # nothing was kept as wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: (run / "metrics.jsonl").write_text((run / "metrics.jsonl").read_text() + "{}\n"), "metrics.jsonl"),
        (lambda run: shutil.rmtree(run / "checkpoints" / "000001200"), "the last checkpoint"),
        (lambda run: (run / "policies" / "000000200" / "arrays.safetensors").write_bytes(b"x"), "policies/000000200"),
        (lambda run: (run / "checkpoints" / ".000001200.partial").write_bytes(b"x"), "is left over"),
        (lambda run: (run / "evaluations.jsonl").write_text(""), "0 rows where 7 are right"),
    ],
    ids=["row", "checkpoint", "policy", "left over", "evaluations"],
)
def test_a_run_that_ended_otherwise_is_noticed(weathered, tmp_path, change, words):
    undisturbed = weathered[1] / "undisturbed" / "bc-1-seed-data-on-disk" / "run"
    run = shutil.copytree(undisturbed, tmp_path / "run")
    assert differences(run, undisturbed, 0, ()) == []
    assert (progress(run), saved_steps(run / "checkpoints")[-1], last_step(run / "metrics.jsonl")) == (1200, 1200, 1200)
    change(run)
    assert any(words in problem for problem in differences(run, undisturbed, 0, ()))


def test_faults_that_do_not_exist_are_refused_in_one_line(tmp_path):
    answer = storm(tmp_path, "--faults", "earthquake")
    assert answer.returncode == 2
    assert answer.stderr.startswith(
        "drol: error: --faults 'earthquake' matches nothing; there are: kill -9 in start-up"
    )
    assert answer.stderr.count("\n") == 1


def test_the_document_has_the_table_of_the_last_storm():
    """`./run storm --minutes 60 --out results/storm.json --document docs/reliability.md` makes both."""
    text = (ROOT / "docs" / "reliability.md").read_text()
    assert {mark["name"] for mark in START.finditer(text) if mark["command"] == "./run storm"} == {
        "storm",
        "faults",
        "runs",
    }
    path = ROOT / "results" / "storm.json"
    if path.is_file():
        found = json.loads(path.read_text())
        assert fill_blocks(text, "./run storm", storm_tables(found)) == text
        assert all(row["lost_more"] == row["wrong"] == 0 for row in found["faults"])


def test_two_storms_are_told_as_one():
    def storm(seed, wrong):
        tally = Tally()
        count = tally.count("kill anywhere", "bc")
        count.injected, count.survived, count.wrong = 3, 2, wrong
        tally.runs["bc"], tally.files["bc"] = 4, 5
        return {"minutes": 10, "seeds": [seed], "date": "today", "cores": 1, "not tried": [], **tally.to_dict()}

    tables = storm_tables(add_storms(storm(0, 0), storm(1, 1)))
    assert "| kill anywhere | 6 | 4 | 0 | 0 | 1 |" in tables["faults"]
    assert "| bc | 8 | 6 | 0 | 10 | 1 |" in tables["runs"]
    assert tables["storm"].startswith("20 minutes of `./run storm` with `--seed 0` and `--seed 1` on 1 core, today: 6 ")
