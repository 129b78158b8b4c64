"""Reports that `drol watch --reports` makes while somebody looks at a run."""

import time

import pytest
from watched_runs import write_rows, write_settings

from drol.reports.live import live_reports
from drol.reports.live.live_reports import ReportMaker
from drol.reports.live.watcher import Watcher
from drol.runs.records import EvaluationRow


@pytest.fixture
def made(monkeypatch):
    """The folders whose reports were made, without making them."""
    folders = []
    monkeypatch.setattr(live_reports, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(ReportMaker, "make", lambda _, folder: folders.append(folder.name))
    return folders


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_run_that_is_looked_at_gets_a_report_after_each_evaluation(tmp_path, made):
    run, other = write_settings(tmp_path / "a"), write_settings(tmp_path / "b")
    write_rows(run, [100])
    write_rows(other, [100])
    watcher = Watcher(tmp_path)
    maker = ReportMaker(watcher)
    try:
        number = {each["name"]: each["id"] for each in watcher.list_runs(0)["runs"]}["a"]
        time.sleep(0.1)
        assert made == []  # nobody looks
        watcher.details([number], 0)
        wait_until(lambda: made == ["a"])
        time.sleep(0.1)
        assert made == ["a"]
        write_rows(run, [200])
        watcher.looked = -1e9
        watcher.details([number], 0)
        wait_until(lambda: made == ["a", "a"])
    finally:
        maker.close()
    assert not maker.thread.is_alive()


def test_a_run_that_nobody_looks_at_any_more_is_left_alone(tmp_path):
    write_rows(write_settings(tmp_path / "a"), [100])
    watcher = Watcher(tmp_path)
    watcher.details([watcher.list_runs(0)["runs"][0]["id"]], 0)
    assert watcher.followed(60) == [(tmp_path / "a", 100)]
    assert watcher.followed(0) == []


def test_a_run_that_is_judged_by_data_alone_is_followed_too(tmp_path):
    run = write_settings(tmp_path / "a")
    run.log_evaluation(EvaluationRow(50, 0, None, (), offline={"single_sample_error": 1.0}))
    watcher = Watcher(tmp_path)
    watcher.details([watcher.list_runs(0)["runs"][0]["id"]], 0)
    assert watcher.followed(60) == [(tmp_path / "a", 50)]


def test_closing_ends_the_process_that_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(live_reports, "PAUSE_SECONDS", 0.01)
    real = live_reports.subprocess.Popen
    monkeypatch.setattr(live_reports.subprocess, "Popen", lambda _, **streams: real(["/bin/sleep", "100"], **streams))
    write_rows(write_settings(tmp_path / "a"), [100])
    watcher = Watcher(tmp_path)
    maker = ReportMaker(watcher)
    watcher.details([watcher.list_runs(0)["runs"][0]["id"]], 0)
    wait_until(lambda: maker.process)
    maker.close()
    assert maker.process.returncode == -9
