"""Running sweeps through executors that train nothing; test_training.py trains."""

import contextlib
import dataclasses
import os
import threading
import time

import pytest
from made_sweeps import Writer, halving, made_sweep, write_run

from drol.errors import InputError
from drol.jobs.job import TIMINGS, Finished
from drol.runs.directory import RunDirectory
from drol.storage import exclusive
from drol.sweeps import execute
from drol.sweeps.execute import is_running, run_sweep, stop_sweep, was_stopped
from drol.sweeps.status import best_table, kind_of, sweep_status
from drol.sweeps.sweep import Budget, Parameter, Search
from drol.sweeps.sweep_runs import planned_runs, swept_runs

MADE = {"dataset_fingerprint": "ab", "circumstances": {}}  # further values that a run's folder records


def test_a_sweep_is_run_once_and_added_values_run_what_is_new(tmp_path):
    sweep = made_sweep(tmp_path)
    first = Writer(sweep)
    runs = run_sweep(sweep, first)
    assert len(first.names) == 8
    assert all(each.status.done for each in runs)
    more = made_sweep(tmp_path, name="other", parameters=(Parameter("alpha", (4.0, 5.0)),))
    second = Writer(more)
    run_sweep(more, second)
    assert [name.split("/")[2] for name in second.names] == ["fql-alpha-5"] * 2
    assert not is_running(sweep)


def test_what_failed_is_left_alone_until_it_is_tried_again(tmp_path):
    sweep = made_sweep(tmp_path)
    runs = run_sweep(sweep, Writer(sweep, broken="alpha-2"))
    failed = [each for each in runs if kind_of(each) == "failed"]
    assert {each.choice["alpha"] for each in failed} == {2.0}
    assert failed[0].failure == "exit code 1 after 1 attempt: loading | drol: error: it broke"
    assert sum(each.status.done for each in runs) == 6
    idle = Writer(sweep)
    run_sweep(sweep, idle)
    assert idle.names == []
    again = Writer(sweep)
    runs = run_sweep(sweep, again, again=True)
    assert len(again.names) == 2
    assert all(each.status.done for each in runs)


def test_a_job_that_ends_well_without_its_run_is_a_failure_and_not_tried_for_ever(tmp_path, monkeypatch):
    sweep = made_sweep(tmp_path, seeds=(0,))
    monkeypatch.setattr("made_sweeps.write_run", lambda *_: None)
    runs = run_sweep(sweep, Writer(sweep))
    assert {kind_of(each) for each in runs} == {"failed"}


def test_halving_runs_rung_after_rung_and_trains_no_more_than_it_must(tmp_path):
    sweep = made_sweep(tmp_path, search=halving())
    writer = Writer(sweep)
    runs = run_sweep(sweep, writer)
    assert len(writer.names) == 8 + 4 + 2
    assert sum(each.status.step for each in runs) == 2 * (20 + 20 + 40 + 60)
    assert [each.choice["alpha"] for each in runs if kind_of(each) == "done"] == [4.0, 4.0]
    idle = Writer(sweep)
    run_sweep(sweep, idle)
    assert idle.names == []


def test_a_failure_does_not_hold_a_rung_up(tmp_path):
    sweep = made_sweep(tmp_path, search=halving())
    runs = run_sweep(sweep, Writer(sweep, broken="alpha-4"))
    assert [each.choice["alpha"] for each in runs if kind_of(each) == "done"] == [3.0, 3.0]


@pytest.mark.parametrize(
    ("budget", "count"),
    [
        (Budget(updates=200), 3),
        (Budget(updates=480), 8),
        (Budget(core_hours=2.5), 3),
    ],  # a run of a `Writer` takes an hour
)
def test_no_run_is_started_that_the_budget_has_no_room_for(budget, count, tmp_path):
    sweep = made_sweep(tmp_path, budget=budget)
    first, second = Writer(sweep), Writer(sweep)
    run_sweep(sweep, first)
    run_sweep(sweep, second)
    assert (len(first.names), second.names) == (count, [])
    assert (tmp_path / TIMINGS).read_text().count("\n") == count


def test_what_failed_is_part_of_the_budget(tmp_path):
    sweep = made_sweep(tmp_path, budget=Budget(core_hours=2.5))
    writer = Writer(sweep, broken="alpha")
    run_sweep(sweep, writer)
    assert len(writer.names) == 3


def test_choices_are_not_dropped_by_a_number_that_no_run_has(tmp_path, monkeypatch):
    sweep = made_sweep(tmp_path, search=dataclasses.replace(halving(), metric="mean_return"))
    monkeypatch.setattr("drol.sweeps.sweep_runs.metric_at", lambda *_: float("nan"))
    with pytest.raises(InputError, match="none of the 8 runs that ended has a finite mean_return"):
        run_sweep(sweep, Writer(sweep))


class Cut(BaseException):
    """Ends a sweep as a kill does."""


class Cutting(Writer):
    """A `Writer` whose process is killed after some runs."""

    def execute(self, jobs, on_finished, keep_going):
        super().execute(jobs, on_finished, keep_going)
        if len(self.names) == self.most:
            raise Cut


def test_a_sweep_that_was_killed_ends_as_a_quiet_one(tmp_path):
    quiet, cut = (made_sweep(tmp_path / name, search=halving()) for name in ("quiet", "cut"))
    run_sweep(quiet, Writer(quiet))
    names = []
    for most in (3, 7):
        cutting = Cutting(cut, most=most)
        with pytest.raises(Cut):
            run_sweep(cut, cutting)
        names += cutting.names
    last = Writer(cut)
    run_sweep(cut, last)
    assert len(names) + len(last.names) == 8 + 4 + 2  # nothing that was finished is done again
    assert best_table(sweep_status(cut)) == best_table(sweep_status(quiet))


def test_a_sweep_is_stopped_from_elsewhere_and_goes_on(tmp_path, monkeypatch):
    sweep = made_sweep(tmp_path)
    with pytest.raises(InputError, match="is not running, so there is nothing to stop"):
        stop_sweep(sweep)

    class Patient(Writer):
        def execute(self, jobs, on_finished, keep_going):
            super().execute([next(iter(jobs))], on_finished, keep_going)
            while keep_going():
                time.sleep(0.01)

    worker = threading.Thread(target=run_sweep, args=(sweep, Patient(sweep)))
    worker.start()
    while not is_running(sweep):
        time.sleep(0.01)
    with pytest.raises(InputError, match="the sweep made is running already"):
        run_sweep(sweep, Writer(sweep))
    assert stop_sweep(sweep, 60)
    worker.join()
    assert was_stopped(sweep)
    rest = Writer(sweep)
    run_sweep(sweep, rest)
    assert len(rest.names) == 7
    assert not was_stopped(sweep)


def test_a_run_that_another_process_trains_is_waited_for(tmp_path, monkeypatch):
    sweep = made_sweep(tmp_path, seeds=(0,))
    run = swept_runs(sweep)[0].run
    directory = RunDirectory(tmp_path / run.name)
    directory.path.mkdir(parents=True)
    directory.write_config({"run": run.config.to_dict(), **MADE})
    looks = []

    def wait(_):
        looks.append(True)
        write_run(run, tmp_path)  # the other process has ended, and finished it
        held.close()

    with exclusive(directory.path / ".lock", "busy") as descriptor:
        held = os.fdopen(os.dup(descriptor))
    monkeypatch.setattr(execute, "WAIT_SECONDS", 0)
    monkeypatch.setattr(execute.time, "sleep", wait)
    writer = Writer(sweep)
    runs = run_sweep(sweep, writer)
    assert (len(writer.names), looks) == (3, [True])
    assert all(each.status.done for each in runs)


def test_a_run_that_another_process_began_first_is_no_failure(tmp_path, monkeypatch):
    sweep = made_sweep(tmp_path, seeds=(0,), parameters=())
    run = swept_runs(sweep)[0].run
    directory = RunDirectory(tmp_path / run.name)
    lock = contextlib.ExitStack()

    class Slower(Writer):
        def execute(self, jobs, on_finished, keep_going):
            for job in jobs:
                directory.path.mkdir(parents=True)
                directory.write_config({"run": run.config.to_dict(), **MADE})
                lock.enter_context(exclusive(directory.path / ".lock", "busy"))
                on_finished(Finished(job.name, 2, 1.0, job.log))

    monkeypatch.setattr(execute.time, "sleep", lambda _: (write_run(run, tmp_path), lock.close()))
    (each,) = run_sweep(sweep, Slower(sweep))
    assert kind_of(each) == "done"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": Search(metric="scroe")}, "unknown search.metric 'scroe'; did you mean score"),
        ({"search": Search(metric="offline/support_ratio")}, "do not have; they have score, mean_return"),
        ({"settings": {"discount": 0.5, "steps": 40}}, None),
    ],
)
def test_a_mistake_is_found_before_anything_starts(changes, message, tmp_path):
    sweep, writer = made_sweep(tmp_path, **changes), None
    if message is None:  # a folder of the same name that holds another run
        run = planned_runs(sweep)[0][0]
        directory = RunDirectory(tmp_path / run.name)
        directory.path.mkdir(parents=True)
        config = run.config.to_dict()
        directory.write_config({"run": config | {"evaluation_seed": 5}, **MADE})
        message = "holds another run \\(evaluation_seed was 5, now 0\\)"
    writer = Writer(sweep)
    with pytest.raises(InputError, match=message):
        run_sweep(sweep, writer)
    assert writer.names == []


def test_a_run_that_went_on_past_its_evaluation_is_refused(tmp_path):
    sweep = made_sweep(tmp_path, settings={"evaluation_interval": 50, "steps": 60})
    run = swept_runs(sweep)[0].run
    directory = RunDirectory(tmp_path / run.name)
    (directory.checkpoints / f"{100:09d}").mkdir(parents=True)
    directory.write_config({"run": run.config.to_dict() | {"steps": 100}, **MADE})
    with pytest.raises(InputError, match="is at step 100 and has no evaluation at step 60; give steps = 100"):
        run_sweep(sweep, Writer(sweep))


def test_a_metric_of_the_log_may_be_compared(tmp_path):
    sweep = made_sweep(tmp_path, search=halving(metric="critic_loss", goal="lowest"))
    runs = run_sweep(sweep, Writer(sweep))
    assert {each.choice["alpha"] for each in runs if kind_of(each) == "done"} == {4.0}
    assert {each.value for each in runs if kind_of(each) == "done"} == {60.0, 59.0}


def test_missing_data_is_one_error_before_any_run(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # where downloaded files are
    sweep = made_sweep(tmp_path, tasks=("pointmaze-medium-navigate-singletask-task1-v0", "scene-play-singletask-task*"))
    writer = Writer(sweep)
    with pytest.raises(
        InputError, match=r"^40 of 48 runs cannot start, because the data of 5 tasks is not here: "
    ) as e:
        run_sweep(sweep, writer)
    assert "task4-v0 and 1 more; get it with `drol data download`" in str(e.value)
    assert writer.names == []


def test_progress_counts_failures(tmp_path):
    sweep, told = made_sweep(tmp_path), []
    run_sweep(sweep, Writer(sweep, broken="alpha-2"), lambda done, total, what: told.append(what))
    assert told[0] == "8 runs to do"
    assert told[-1].endswith("fql-alpha-4/seed-1, 2 failed")
