import os
import signal
import threading
import time

import pytest

from drol.errors import InputError
from drol.paper.reproduce import execute as executing
from drol.paper.reproduce.execute import Finished, Job, LocalExecutor, execute, execute_all, read_timings
from drol.paper.reproduce.plan import make_plan

VERSION = ("--version",)


class Recorder:
    """An executor that runs nothing and says that everything went well, or not."""

    def __init__(self, code=0):
        self.code, self.jobs = code, []

    def execute(self, jobs, on_finished):
        self.jobs += jobs
        for job in jobs:
            on_finished(Finished(job.name, self.code, 1.0, job.log))


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(executing, "POLL_SECONDS", 0.01)


def test_only_what_is_missing_is_handed_over(tmp_path):
    plan = make_plan("fig4", "smoke", seeds=1, root=tmp_path)
    recorder, lines = Recorder(), []
    ended = execute(plan, recorder, lambda done, total, what: lines.append((done, total, what)))
    assert [job.name for job in recorder.jobs] == [run.name for run in plan.runs] == [each.name for each in ended]
    assert recorder.jobs[0].commands[0][:2] == ("train", plan.runs[0].task)
    assert lines[0] == (0, 120, "2 runs to do")


def test_a_failure_is_reported_with_its_log_and_stops_nothing(tmp_path):
    plan = make_plan("fig4", "smoke", seeds=1, root=tmp_path)
    lines = []
    ended = execute(plan, Recorder(3), lambda *line: lines.append(line[2]))
    assert [each.code for each in ended] == [3, 3]
    assert "failed with exit code 3, see " in lines[-1]


def test_what_results_add_to_a_plan_is_run_as_well(tmp_path):
    plans = [make_plan("fig4", "smoke", seeds=count, root=tmp_path) for count in (1, 1, 2, 2)]
    waiting, recorder = iter([plans[0], plans[2], plans[3]]), Recorder()
    plan, ended = execute_all(lambda: next(waiting), recorder)
    assert plan is plans[3]
    assert len(ended) == len(recorder.jobs) == 2 + 4


def test_a_failure_ends_after_the_plan_it_is_in(tmp_path):
    waiting = iter([make_plan("fig4", "smoke", seeds=count, root=tmp_path) for count in (1, 2)])
    _, ended = execute_all(lambda: next(waiting), Recorder(3))
    assert len(ended) == 2


def test_commands_run_one_after_another_until_one_fails(tmp_path, quick):
    ended = []
    jobs = [
        Job("good", (VERSION, VERSION), tmp_path / "logs" / "good.log"),
        Job("bad", (("no-such-command",), VERSION), tmp_path / "logs" / "bad.log"),
    ]
    LocalExecutor(2).execute(jobs, ended.append)
    assert {each.name: each.code for each in ended} == {"good": 0, "bad": 2}
    assert (tmp_path / "logs" / "good.log").read_text().count("drol ") == 2
    assert "unknown command" in (tmp_path / "logs" / "bad.log").read_text()
    assert "drol 0" not in (tmp_path / "logs" / "bad.log").read_text()


def test_a_signal_stops_what_runs_and_starts_nothing_more(tmp_path, quick, monkeypatch):
    started, stopped = [], []

    class Endless:
        def __init__(self, job, cores):
            started.append((job.name, cores))
            self.cores = cores

        def poll(self):
            return False

        def stop(self):
            stopped.append(True)

        def wait(self):
            pass

    monkeypatch.setattr(executing, "Running", Endless)
    threading.Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGTERM))).start()
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(1).execute([Job("a", (VERSION,), tmp_path), Job("b", (VERSION,), tmp_path)], print)
    assert [name for name, _ in started] == ["a"]
    assert stopped == [True]


def test_timings_of_runs_are_kept(tmp_path):
    run = make_plan("fig4", "smoke", seeds=1, root=tmp_path).runs[0]
    executing.append_timing(tmp_path, run, 60, 3.14159)
    executing.append_timing(tmp_path, run, 0, 1.0)  # nothing was trained
    assert [(each.method, each.candidates, each.updates, each.seconds) for each in read_timings(tmp_path)] == [
        ("drol", 1, 60, 3.1)
    ]
    (tmp_path / executing.TIMINGS).write_text("broken\n")
    with pytest.raises(InputError, match="has a line that is no timing"):
        read_timings(tmp_path)
