import pytest

from drol.jobs.job import Timing, append_timing
from drol.planning.planned_run import PlannedRun
from drol_reproduction import cost as costing
from drol_reproduction.cost import operations_of, remaining_cost
from drol_reproduction.plan import make_plan

CUBE = "cube-single-play-singletask-task2-v0"


def test_updates_and_published_times_give_gpu_hours(tmp_path, monkeypatch):
    monkeypatch.setattr(costing, "timed_product", lambda: 0.01)
    plan = make_plan("table1", tasks=CUBE, methods=["fql"], root=tmp_path)
    told = []
    cost = remaining_cost(plan, lambda *words: told.append(words))
    assert told == [(0, 1, f"operations of an update of fql on {CUBE}"), (1, 1, "done")]
    assert cost.updates == 8_000_000
    assert cost.gpu_hours == pytest.approx(8_000_000 * 5.0 / 3.6e6)  # 5.0 ms of the paper's figure
    assert "timed now" in cost.how


def test_finished_runs_give_core_hours(tmp_path):
    plan = make_plan("table1", "small", tasks=CUBE, methods=["fql"], seeds=1, root=tmp_path)
    append_timing(tmp_path, Timing("small", CUBE, "fql", None, 1, 7_000, 360.0))
    append_timing(tmp_path, Timing("small", CUBE, "fql", None, 1, 7_000, 0.0))  # a cluster that did not say
    append_timing(tmp_path, Timing("small", CUBE, "fql", None, 1, 7, 360.0, failed=True))
    append_timing(tmp_path, Timing("small", CUBE, "one-of-a-sweep", None, 1, 7_000, 360.0))
    cost = remaining_cost(plan)
    assert cost.core_hours == pytest.approx(1.0)
    assert "1 finished runs here" in cost.how


def test_more_candidates_are_more_operations():
    few, many = (operations_of(PlannedRun("small", CUBE, "drol", (0,), {"num_candidates": k})) for k in (1, 64))
    assert many > 3 * few
