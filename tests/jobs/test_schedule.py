"""The schedule, on workers that are simulated; tests/jobs/test_local.py has real processes."""

import tracemalloc
from pathlib import Path

import pytest
from queue_simulation import Killed, SimulatedWorkers

from drol.jobs.job import Job
from drol.jobs.schedule import run_jobs

LOG = Path("log")


def made_jobs(count):
    return [Job(f"job {number}", ("--version",), LOG) for number in range(count)]


def test_six_thousand_jobs_on_five_hundred_workers_with_failures_and_kills_lose_and_double_nothing():
    jobs, ended, killed = made_jobs(6000), {}, 0
    broken = [job.name for job in jobs[::600]]
    done, taken, cut = {}, 0, 0

    def left():
        nonlocal taken
        for job in jobs:
            if job.name not in done and job.name not in ended:
                taken += 1
                yield job

    def on_finished(finished):
        assert finished.name not in done
        (ended if finished.code else done)[finished.name] = finished

    for kill_at in (60, 150, None):  # the queue is killed twice and started again
        workers = SimulatedWorkers(500, failing=0.05, broken=broken, killed_at=kill_at, seed=kill_at or 0)
        try:
            run_jobs(left(), workers, on_finished, retries=5)
        except Killed:
            killed += 1
            cut += len({*workers.started} - {*done} - {*ended})
        assert workers.most_busy == 500
        assert set(workers.done.values()) <= {1}  # in one life of the queue nothing is done twice
    assert killed == 2
    assert {*ended} == {*broken}  # 5% six times in a row does not happen here
    assert {each.attempts for each in ended.values()} == {6}
    assert len(done) == 6000 - len(broken)
    assert taken == 6000 + cut  # only what was under way, or to be tried again, at a kill is taken again


def test_jobs_are_taken_as_there_is_room_and_forgotten_when_they_end():
    def endless():
        for number in range(4_000):
            yield Job(f"job {number}", ("--version",), LOG)

    counted = [0]
    tracemalloc.start()
    run_jobs(endless(), SimulatedWorkers(5), lambda _: counted.__setitem__(0, counted[0] + 1))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted == [4_000]
    assert most < 4_000 * 400  # the simulation counts names; jobs that ended are not kept


def test_what_failed_is_tried_again_after_the_others_and_bad_input_is_not():
    order, ended = [], []

    class Codes(SimulatedWorkers):
        def start(self, job):
            work = super().start(job)
            order.append(job.name)
            work.code = {"job 0": 9, "job 1": 2}.get(job.name, 0)
            return work

    run_jobs(made_jobs(4), Codes(1), lambda each: ended.append((each.name, each.code, each.attempts)), retries=2)
    assert order == ["job 0", "job 1", "job 2", "job 3", "job 0", "job 0"]
    assert ended == [("job 1", 2, 1), ("job 2", 0, 1), ("job 3", 0, 1), ("job 0", 9, 3)]


def test_a_stop_starts_nothing_more_and_stops_what_is_under_way():
    workers, works = SimulatedWorkers(2), []
    start = workers.start
    workers.start = lambda job: works.append(start(job)) or works[-1]
    looks = iter([True, False])
    run_jobs(made_jobs(4), workers, pytest.fail, keep_going=lambda: next(looks))
    assert [work.stopped for work in works] == [True, True]


def test_a_job_that_was_stopped_together_with_the_queue_has_not_failed():
    class Told(SimulatedWorkers):
        def start(self, job):
            work = super().start(job)
            work.code, work.ends = (143, 1) if job.name == "job 0" else (0, 1)
            return work

    ended, looks = [], iter([True, False, False, False])  # the stop comes while everybody waits
    run_jobs(made_jobs(2), Told(2), lambda each: ended.append(each.name), keep_going=lambda: next(looks))
    assert ended == ["job 1"]


def test_time_is_what_jobs_ran_in_all_attempts():
    ended = []

    class Failing(SimulatedWorkers):
        def start(self, job):
            work = super().start(job)
            work.code, work.seconds = 9, 5.0
            return work

    run_jobs(made_jobs(1), Failing(1), ended.append, retries=2)
    assert (ended[0].attempts, ended[0].seconds) == (3, 15.0)


def test_an_error_of_the_caller_stops_what_is_under_way():
    workers = SimulatedWorkers(2)

    def raise_error(_):
        raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        run_jobs(made_jobs(4), workers, raise_error)
    assert workers.busy == 1  # it was stopped: `wait` of a simulated work asserts that
