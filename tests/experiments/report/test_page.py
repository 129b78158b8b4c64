import re

import pytest
from toys import tiny_config, tiny_task

from drol.experiments.report import page as report
from drol.experiments.report.page import wilson_interval, write_report
from drol.runs.directory import RunDirectory
from drol.training.trainer import train

pytestmark = pytest.mark.usefixtures("quick_compile")


def page_of(path, toy, monkeypatch, **changes):
    train(tiny_config(seeds=(0,), steps=6, **changes), path, toy, processes=2, quiet=True)
    monkeypatch.setattr(report, "load_task", lambda *_: toy)
    return write_report(RunDirectory(path)).read_text()


def titles(page):
    return re.findall("<h2>(.*?)</h2>", page)


def test_a_run_in_a_maze_shows_its_score_its_paths_and_its_candidates(tmp_path, monkeypatch):
    page = page_of(tmp_path / "run", tiny_task(), monkeypatch)
    assert titles(page)[:4] == ["Learning", "In the maze", "Candidates and their cells", "Routing"]
    scores = RunDirectory(tmp_path / "run").read_evaluations()
    assert f"<b>{scores[-1]['score']:.1f}</b> success (%) after 6 updates" in page
    assert "http" not in re.sub(r"http://www\.w3\.org\S+|http://purl\S+|http://creativecommons\S+", "", page)
    assert {each.name for each in (tmp_path / "run" / "figures").iterdir()} == {
        "learning.png", "maze.png", "states.png", "cells.png", "routing.png",
    }  # fmt: skip


def test_a_run_without_a_simulator_shows_what_held_out_data_says(tmp_path, monkeypatch):
    page = page_of(tmp_path / "run", tiny_task(None, maze=None), monkeypatch)
    assert titles(page)[:2] == ["On held-out data", "Routing"]
    assert "judged by held-out data, not scored" in page


def test_fine_tuning_has_a_section_of_its_own(tmp_path, monkeypatch):
    page = page_of(tmp_path / "run", tiny_task(maze=None), monkeypatch, online_steps=20)
    assert titles(page)[:3] == ["Learning", "Fine-tuning", "Routing"]
    assert "after 26 updates" in page


def test_names_cannot_write_into_the_page(tmp_path, monkeypatch):
    path = tmp_path / "<script>alert(1)</script>"
    page = page_of(path, tiny_task(None, maze=None), monkeypatch, task="<script>alert(2)</script>")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(2)" in page


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"), [(0, 50, 0.0, 0.0713), (50, 50, 0.9287, 1.0), (25, 50, 0.3664, 0.6336)]
)
def test_the_interval_is_wilsons(successes, count, low, high):
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=1e-4)
