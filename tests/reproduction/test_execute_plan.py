from drol.jobs.job import Finished, read_timings
from drol.planning.execute_runs import execute_runs
from drol.planning.planned_run import PlannedRun, RunStatus
from drol_reproduction.execute_plan import execute, execute_all
from drol_reproduction.plan import make_plan


class Recorder:
    """An executor that runs nothing and says that everything went well, or not."""

    def __init__(self, code=0):
        self.code, self.jobs = code, []

    def execute(self, jobs, on_finished, keep_going=None):
        for job in jobs:
            self.jobs.append(job)
            on_finished(Finished(job.name, self.code, 1.0, job.log))


def test_only_what_is_missing_is_handed_over(tmp_path):
    plan = make_plan("fig4", "smoke", seeds=1, root=tmp_path)
    recorder, lines = Recorder(), []
    ended = execute(plan, recorder, lambda done, total, what: lines.append((done, total, what)))
    assert [job.name for job in recorder.jobs] == [run.name for run in plan.runs] == [each.name for each in ended]
    assert recorder.jobs[0].arguments[0] == "execute"
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


def test_how_long_a_run_took_is_kept_if_it_trained(tmp_path, monkeypatch):
    plan = make_plan("fig4", "smoke", seeds=1, root=tmp_path)
    execute(plan, Recorder())
    assert not read_timings(tmp_path)
    before = plan.statuses()
    monkeypatch.setattr(PlannedRun, "status", lambda *_: RunStatus(60, 60, False, True))
    execute_runs(before, tmp_path, Recorder())
    first = read_timings(tmp_path)[0]
    assert (first.method, first.candidates, first.updates, first.seconds) == ("drol", 1, 60, 1.0)
    assert first.run == plan.runs[0].name


def test_modules_of_the_user_are_arguments_of_every_job_and_in_no_file(tmp_path):
    plan, recorder = make_plan("fig4", "smoke", seeds=1, root=tmp_path), Recorder()
    execute(plan, recorder, imports=["mine"])
    assert {job.arguments[2:] for job in recorder.jobs} == {("--import", "mine")}
    assert not any("mine" in file.read_text() for file in (tmp_path / "jobs").iterdir())
