import json
import os
import shutil

import pytest
from made_sweeps import made_sweep
from watched_runs import write_many, write_rows, write_settings

from drol.errors import InputError
from drol.reports.live import watched, watcher
from drol.reports.live.watcher import Watcher
from drol.runs.directory import LOCK
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow
from drol.storage import exclusive
from drol.tasks.base import Episode


@pytest.fixture(autouse=True)
def every_look_looks(monkeypatch):
    """Nobody waits between two looks."""
    monkeypatch.setattr(watcher, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(watcher, "SCAN_SECONDS", -1.0)


def names(found):
    return sorted(run["name"] for run in found["runs"])


def test_runs_are_found_wherever_they_are_and_again_only_when_they_change(tmp_path):
    one, two = write_settings(tmp_path / "a"), write_settings(tmp_path / "b" / "c" / "d")
    write_settings(one.path / "inside")  # a run has no runs in it
    seen = Watcher(tmp_path)
    found = seen.list_runs(0)
    assert names(found) == ["a", "b/c/d"]
    assert found["count"] == 2
    assert names(seen.list_runs(found["version"])) == []
    write_rows(two, [100])
    changed = seen.list_runs(found["version"])
    assert names(changed) == ["b/c/d"]
    (run,) = changed["runs"]
    assert (run["step"], run["total"], run["score"], run["state"]) == (100, 1000, 10.0, "stopped")
    assert run["values"] == [10.0]
    assert run["percent"]
    write_settings(tmp_path / "new")
    assert names(seen.list_runs(changed["version"])) == ["new"]


def test_a_run_that_vanishes_is_told_once(tmp_path):
    write_rows(write_settings(tmp_path / "a"), [100])
    seen = Watcher(tmp_path)
    (run,) = seen.list_runs(0)["runs"]
    version = seen.version
    shutil.rmtree(tmp_path / "a")
    found = seen.list_runs(version)
    assert (found["gone"], found["count"], found["runs"]) == ([run["id"]], 0, [])
    assert seen.details([run["id"]], 0)["found"] == []
    assert seen.list_runs(found["version"])["gone"] == []
    write_settings(tmp_path / "a")
    assert names(seen.list_runs(found["version"])) == ["a"]


def test_a_run_that_goes_back_to_a_checkpoint_loses_its_later_rows(tmp_path):
    directory = write_settings(tmp_path / "a")
    write_rows(directory, [100, 200, 300])
    seen = Watcher(tmp_path)
    assert seen.list_runs(0)["runs"][0]["step"] == 300
    directory.rewind(100)
    seen.list_runs(0)
    (run,) = seen.list_runs(0)["runs"]
    assert (run["step"], run["values"]) == (100, [10.0])


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """A running run whose rows are written at given times, of a clock that begins at 1000."""
    directory, seen = write_settings(tmp_path / "a"), Watcher(tmp_path)
    clock = [1000.0]
    monkeypatch.setattr(watched.time, "time", lambda: clock[0])

    class Timed:
        @staticmethod
        def write(steps, at):
            clock[0] = at
            write_rows(directory, steps, scores=False)
            os.utime(directory.path / "metrics.jsonl", (at, at))

        @staticmethod
        def start(at):
            os.utime(directory.path / "config.json", (at, at))

        @staticmethod
        def left(at):
            clock[0] = at
            seen.look()
            (run,) = seen.runs.values()
            return run.seconds_left()

        remove = (directory.path / "metrics.jsonl").unlink
        lock = directory.path / LOCK

    Timed.start(1000.0)
    with exclusive(Timed.lock, "busy"):
        yield Timed


def test_the_time_left_is_estimated_from_the_rows_that_arrive(timed):
    for step, at in ((100, 1010.0), (200, 1020.0), (300, 1030.0)):
        timed.write([step], at)
        timed.left(at)
    assert timed.left(1035.0) == pytest.approx(700 * 0.1 - 5)  # the last row was written five seconds ago


def test_the_time_left_is_right_when_the_page_is_opened_in_the_middle_of_a_run(timed):
    timed.write(range(10, 910, 10), 1090.0)  # 90 rows, a second each; the last one was written long before the look
    assert timed.left(1090.9) is None  # there is one time and no saved policy
    timed.write([910], 1092.0)
    assert timed.left(1092.5) == pytest.approx(90 * 0.2 - 0.5)
    timed.write([920], 1093.0)
    assert timed.left(1093.0) == pytest.approx(80 * 0.15)


def test_rows_from_before_a_run_was_resumed_do_not_count_as_slow(timed):
    timed.write([100], 1010.0)
    timed.start(5000.0)  # an hour later
    assert timed.left(5000.0) is None
    timed.write([200], 5010.0)
    timed.left(5010.0)
    timed.write([300], 5020.0)
    assert timed.left(5020.0) == pytest.approx(70.0)


def test_a_run_that_begins_anew_has_no_time_left_of_before(timed):
    for step, at in ((100, 1010.0), (200, 1020.0)):
        timed.write([step], at)
        assert (timed.left(at) is None) == (step == 100)
    timed.remove()  # it was killed before its first checkpoint
    timed.left(1021.0)
    timed.write([100], 1040.0)
    timed.left(1040.0)
    assert timed.left(1040.0) is None


def test_the_state_of_a_run_is_what_its_folder_says(tmp_path):
    directory = write_settings(tmp_path / "a")
    seen = Watcher(tmp_path)

    def state():
        seen.look()
        return next(iter(seen.runs.values())).state

    assert state() == "stopped"
    with exclusive(directory.path / LOCK, "busy"):
        assert state() == "running"
    directory.divergence.write_text("{}")
    assert state() == "diverged"
    directory.divergence.unlink()
    write_rows(directory, [1000])
    assert state() == "finished"
    (directory.path / "config.json").write_text('{"run": {"algorithm": 3}}')
    os.utime(directory.path / "config.json", (1, 1))
    assert state() == "unreadable"
    (run,) = seen.list_runs(0)["runs"]
    assert "config.json: " in run["trouble"]


def test_nan_is_a_gap_and_what_is_sent_is_always_json(tmp_path):
    directory = write_settings(tmp_path / "a")
    directory.log_metrics(MetricsRow(10, 0, {"critic_loss": float("nan")}))
    directory.log_metrics(MetricsRow(20, 0, {"critic_loss": 2.0}))
    directory.log_evaluation(EvaluationRow(20, 0, float("nan"), (Episode(0, float("nan"), 1, False),)))
    seen = Watcher(tmp_path)
    (run,) = seen.list_runs(0)["runs"]
    assert (run["values"], run["metric"], run["score"]) == ([None, 2.0], "critic_loss", None)
    details = seen.details([run["id"]], 0)
    json.dumps([run, details], allow_nan=False)
    (chart,) = details["metrics"]
    assert chart["series"][0]["y"] == [None, 2.0]


@pytest.mark.parametrize("values", [(1.7e308, 1.7e308), (1.7e308, -1.7e308), (float("inf"), 1.0), (5e-324, 0.0)])
def test_numbers_near_the_largest_are_gaps_or_numbers(tmp_path, values):
    directory = write_settings(tmp_path / "a")
    for seed, value in enumerate(values):
        directory.log_metrics(MetricsRow(10, seed, {"critic_loss": value}))
        directory.log_evaluation(EvaluationRow(10, seed, value, (Episode(0, value, 1, False),)))
    seen = Watcher(tmp_path)
    (run,) = seen.list_runs(0)["runs"]
    json.dumps([run, seen.details([run["id"]], 0)], allow_nan=False)


def test_details_have_curves_settings_tables_and_the_command(tmp_path):
    one, two = write_settings(tmp_path / "a"), write_settings(tmp_path / "b", seeds=(0,))
    write_rows(one, [100, 200])
    write_rows(two, [100])
    one.log_extra_evaluation(EvaluationRow(200, 0, 55.0, (Episode(0, 0.0, 9, True),), best_of=16))
    one.log_offline_evaluation(OfflineRow(200, 0, 1, 0.99, 10, True, 1.0, {"value": 4.25}))
    (one.path / "report.html").write_text("<p>")
    seen = Watcher(tmp_path)
    listed = {run["name"]: run["id"] for run in seen.list_runs(0)["runs"]}
    found = seen.details([listed["a"], listed["b"], "no-such", listed["a"]], 0)
    assert found["found"] == [listed["a"], listed["b"]]
    assert [group["label"] for group in found["groups"]] == ["a", "b"]
    means = {line["label"]: line for line in found["learning"]["series"] if not line.get("thin")}
    assert means["a"]["y"] == [10.0, 20.0]
    assert means["a"]["low"][1] < 20 < means["a"]["high"][1]
    assert [chart["name"] for chart in found["metrics"]] == ["actor_loss", "critic_loss"]
    about = found["about"][0]
    assert about["settings"]["num_candidates"] == "4"
    assert about["later"][1] == ["200", "0", "16", "55.0", "1"]
    assert about["offline"] == [["updates", "seed", "value"], ["200", "0", "4.25"]]
    assert about["files"] == {"": ["report.html"], "videos": []}
    assert seen.details([listed["a"], listed["b"]], found["version"])["unchanged"]
    write_rows(two, [200])
    assert "learning" in seen.details([listed["a"], listed["b"]], found["version"])


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    write_rows(write_settings(tmp_path / "elsewhere" / "secret"), [100])
    root = tmp_path / "root"
    own = write_settings(root / "own")
    (root / "linked").symlink_to(tmp_path / "elsewhere" / "secret")
    (own.path / "metrics.jsonl").symlink_to(tmp_path / "elsewhere" / "secret" / "metrics.jsonl")
    (own.path / "videos").symlink_to(tmp_path)
    (own.path / "report.html").symlink_to(tmp_path / "elsewhere" / "secret" / "config.json")
    seen = Watcher(root)
    (run,) = seen.list_runs(0)["runs"]
    assert (run["name"], run["step"]) == ("own", 0)
    assert seen.details([run["id"]], 0)["about"][0]["files"] == {"": [], "videos": []}
    assert seen.file(run["id"], "", "report.html") is None


def test_one_look_reads_a_stated_number_of_bytes_and_the_next_goes_on(tmp_path, monkeypatch):
    write_many(tmp_path, 12)
    size = (tmp_path / "run-0" / "metrics.jsonl").stat().st_size
    monkeypatch.setattr(watcher, "READ_AT_ONCE", 3 * size)
    seen, looks, reading = Watcher(tmp_path), 0, True
    while reading:
        before = sum(run.files["metrics.jsonl"].offset for run in seen.runs.values())
        found = seen.list_runs(0)
        assert found["count"] == len(found["runs"]) == 12  # all are listed at once, whether their rows were read or not
        assert sum(run.files["metrics.jsonl"].offset for run in seen.runs.values()) - before <= 3 * size
        reading, looks = found["reading"], looks + 1
    assert 4 <= looks <= 6
    assert all(run.step == 1000 for run in seen.runs.values())


def test_more_runs_than_are_watched_are_said(tmp_path, monkeypatch):
    write_many(tmp_path, 5)
    monkeypatch.setattr(watcher, "MOST_RUNS", 3)
    found = Watcher(tmp_path).list_runs(0)
    assert (found["count"], found["too_many"]) == (3, 3)


def test_long_lines_are_thinned_and_long_names_shortened(tmp_path, monkeypatch):
    monkeypatch.setattr(watched, "MOST_POINTS", 10)
    name = "/".join(["x" * 200, "y" * 200])
    directory = write_settings(tmp_path / name)
    write_rows(directory, range(1, 200), scores=False)
    seen = Watcher(tmp_path)
    (run,) = seen.list_runs(0)["runs"]
    assert len(run["name"]) < 310
    (kept,) = seen.runs.values()
    assert len(kept.lines["critic_loss"][0].points) <= 10
    assert run["step"] == 199


def test_a_sweep_is_told_with_its_runs(tmp_path):
    sweep = made_sweep(tmp_path)
    found = Watcher(tmp_path, sweep).list_runs(0)["sweep"]
    assert found["name"] == "made"
    assert found["words"] == "0 of 8 runs done, 8 waiting"
    assert not found["running"]


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a folder; give a folder for runs"):
        Watcher(tmp_path / "no")
    assert Watcher(tmp_path).list_runs(0)["count"] == 0
