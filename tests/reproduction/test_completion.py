"""Which planned seeds count as done."""

import json
from dataclasses import replace

from made_results import made_result

from drol.jobs.job import Timing
from drol.planning.planned_run import PlannedRun
from drol.results.collect import changed_settings
from drol_reproduction.completion import status_tables

TASK = "pointmaze-medium-navigate-singletask-task1-v0"


def counted(*rows):
    """Return the number of finished seeds of IQL on the task."""
    line = next(line for line in status_tables(rows, ())["runs"].splitlines() if TASK in line)
    return next(each.strip() for each in line.split("|")[3].split(",") if each.strip().startswith("iql"))


def test_only_what_was_trained_as_planned_is_done():
    config = PlannedRun("small", TASK, "iql", (0,)).settings
    settings = json.loads(changed_settings(config, {}, config.steps))
    ends = {"task": TASK, "method": "iql", "step": config.steps, "steps": config.steps}
    done = made_result(settings=settings, **ends)
    assert counted(done) == "iql 1/3"
    assert counted(done, replace(done, seed=2), replace(done, seed=7)) == "iql 2/3"  # no seed 7 is planned
    assert counted(replace(done, step=5, steps=5)) == "iql 0/3"
    assert counted(replace(done, step=5)) == "iql 0/3"
    assert counted(made_result(settings=settings | {"discount": 0.5}, **ends)) == "iql 0/3"
    assert counted(replace(done, evaluation="extra")) == "iql 0/3"


def test_the_time_of_several_cores_counts_for_each():
    timing = Timing("small", TASK, "iql", None, 1, 30_000, 1800.0, cores=4)
    assert "1 runs were timed: 2.0 core-hours" in status_tables((), [timing])["experiments"]
