"""The status of a sweep, in the terminal and as a page."""

import json
import os
import re

import pytest
from made_sweeps import MAZE, Writer, halving, made_sweep, write_run

from drol.jobs.job import Timing, append_timing
from drol.reports.sweep_page import write_sweep_page
from drol.runs.directory import RunDirectory
from drol.storage import exclusive
from drol.sweeps.effects import effects_of, make_levels
from drol.sweeps.execute import run_sweep
from drol.sweeps.status import forecast, sweep_results, sweep_status, text_status
from drol.sweeps.sweep import Parameter
from drol.sweeps.sweep_runs import swept_runs
from drol.tasks.base import Episode


def test_a_status_says_what_is_done_runs_failed_and_is_best(tmp_path):
    sweep = made_sweep(tmp_path)
    assert text_status(sweep_status(sweep)) == "made: 0 of 8 runs done, 8 waiting, no process executes it"
    assert list(tmp_path.iterdir()) == []  # reading the status changes nothing
    run_sweep(sweep, Writer(sweep, broken="alpha-2/seed-1", most=6))
    run = swept_runs(sweep)[-1].run
    write_run(run, tmp_path, 20)
    append_timing(tmp_path, Timing("smoke", MAZE, "fql", None, 1, 60, 120.0))
    with exclusive(RunDirectory(tmp_path / run.name).path / ".lock", "busy"):
        assert (
            text_status(sweep_status(sweep))
            == f"""made: 5 of 8 runs done, 1 running, 1 failed, 1 waiting, no process executes it

running
  smoke/{MAZE}/fql-alpha-4/seed-1: 20 of 60, 40 min 0 s left

failed; `drol sweep retry` tries them again
  smoke/{MAZE}/fql-alpha-2/seed-1: exit code 1 after 1 attempt: loading | drol: error: it broke

best so far
task                                                choice  seeds  updates  score    95% interval
pointmaze-medium-navigate-singletask-task1-v0  fql alpha=4      1       60     40               -
pointmaze-medium-navigate-singletask-task1-v0  fql alpha=3      1       60     30               -
pointmaze-medium-navigate-singletask-task1-v0  fql alpha=2      1       60     20               -
pointmaze-medium-navigate-singletask-task1-v0  fql alpha=1      2       60   10.5  4.147 to 16.85"""
        )


@pytest.mark.parametrize(("seeds", "low", "high"), [((0,), 0.0, 32.44), ((0, 1, 2), 0.0, 13.8)])
def test_eight_episodes_without_success_are_not_known_exactly(tmp_path, seeds, low, high):
    """Seeds that all score 0 had the interval 0 to 0; Wilson's over all episodes is shown."""
    parameters = (Parameter("alpha", (1.0, 2.0)),)
    sweep = made_sweep(tmp_path, seeds=seeds, parameters=parameters)
    failed = tuple(Episode(number, -1.0, 1, False) for number in range(8))
    for each in swept_runs(sweep):
        write_run(each.run, tmp_path, episodes=failed, score=0.0)
    status = sweep_status(sweep)
    assert [each.interval for each in status.best()] == [pytest.approx((low, high), abs=0.01)] * 2
    assert f"{low:.4g} to {high:.4g}" in text_status(status)
    (effect,) = effects_of(status)
    assert effect.levels[0].interval == pytest.approx((low, high), abs=0.01)


def test_time_left_follows_from_saved_policies_where_nothing_has_ended(tmp_path):
    sweep = made_sweep(tmp_path, seeds=(0,))
    run = swept_runs(sweep)[0].run
    write_run(run, tmp_path, 40)
    directory = RunDirectory(tmp_path / run.name)
    for step, time in ((20, 1000.0), (40, 1100.0)):
        (directory.policies / f"{step:09d}").mkdir(parents=True)
        os.utime(directory.policies / f"{step:09d}", (time, time))
    with exclusive(directory.path / ".lock", "busy"):
        assert sweep_status(sweep).seconds_left == {run.name: pytest.approx(100.0)}


def test_effects_are_means_over_all_runs_with_a_value(tmp_path):
    parameters = (Parameter("alpha", (1.0, 2.0)), Parameter("discount", (0.9, 0.95)))
    sweep = made_sweep(tmp_path, parameters=parameters)
    run_sweep(sweep, Writer(sweep))
    first, second = effects_of(sweep_status(sweep))
    assert [(each.label, each.runs, each.mean) for each in first.levels] == [("1", 4, 10.5), ("2", 4, 20.5)]
    assert {level.mean for level in second.levels} == {15.5}
    assert tuple(first.levels[0].interval) == pytest.approx((9.581, 11.419), abs=0.001)  # Student, over 10, 11, 10, 11
    assert (first.parameter, first.method, first.steps) == ("alpha", "fql", 60)


def test_effects_of_halving_compare_all_runs_after_the_first_steps(tmp_path):
    sweep = made_sweep(tmp_path, search=halving())
    run_sweep(sweep, Writer(sweep))
    (effect,) = effects_of(sweep_status(sweep))
    assert (effect.steps, [level.mean for level in effect.levels]) == (20, [10.5, 20.5, 30.5, 40.5])


def test_many_numbers_are_put_into_bins():
    levels = make_levels([(float(value), 2.0 * value, None) for value in range(40)])
    assert [(level.label, level.runs) for level in levels] == [
        ("0 to 9", 10),
        ("10 to 19", 10),
        ("20 to 29", 10),
        ("30 to 39", 10),
    ]
    assert levels[0].mean == 9.0
    assert [level.label for level in make_levels([(True, 1.0, None), (False, 2.0, None), ((8, 8), 1.0, None)])] == [
        "true",
        "false",
        "8x8",
    ]


def test_the_page_shows_the_table_the_curves_and_the_effects(tmp_path):
    sweep = made_sweep(tmp_path, name="page")
    run_sweep(sweep, Writer(sweep, broken="alpha-2"))
    page = write_sweep_page(sweep_status(sweep), tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
    for words in ("6 of 8 runs done, 2 failed", "fql alpha=4", "Hyperparameters", "it broke", "34.15 to 46.85"):
        assert words in page
    assert not re.search("(src|href)=.http", page)


def test_results_are_those_of_the_runs_of_the_sweep(tmp_path):
    sweep = made_sweep(tmp_path, seeds=(0,))
    run_sweep(sweep, Writer(sweep))
    write_run(swept_runs(made_sweep(tmp_path, seeds=(5,)))[0].run, tmp_path)  # of another sweep
    results = sweep_results(sweep)
    assert {(row.seed, json.loads(row.settings)["alpha"]) for row in results} == {
        (0, 1.0),
        (0, 2.0),
        (0, 3.0),
        (0, 4.0),
    }


def test_the_start_of_a_sweep_says_how_much_there_is_to_do(tmp_path):
    sweep = made_sweep(tmp_path)
    words = "made: 8 runs, 8 to do; 480 updates; the time is known once a run of each task and method has ended"
    assert forecast(sweep_status(sweep)) == words
    run_sweep(sweep, Writer(sweep, most=2))
    (tmp_path / "timings.jsonl").unlink()
    append_timing(tmp_path, Timing("smoke", MAZE, "fql", None, 1, 60, 120.0))
    words = "made: 8 runs, 6 to do; 360 updates; about 12 min 0 s if they run one after another"
    assert forecast(sweep_status(sweep)) == words
    halved = made_sweep(tmp_path / "other", search=halving())
    assert "at most 480 updates" in forecast(sweep_status(halved))
