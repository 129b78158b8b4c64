"""Choices of parameters, and the runs that they make."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from made_sweeps import MAZE, halving, made_sweep, write_run

from drol.errors import InputError
from drol.planning.run_file import RunFile
from drol.sweeps.search import choices, draw
from drol.sweeps.sweep import Parameter, Search
from drol.sweeps.sweep_runs import planned_runs, survivors, swept_runs
from drol_reproduction.plan import make_plan


def names(sweep):
    return [run.name for run, _ in planned_runs(sweep)]


def test_a_grid_is_all_combinations_of_what_a_method_has(tmp_path):
    parameters = (Parameter("discount", (0.9, 0.99)), Parameter("alpha", (1.0, 2.0), methods=("fql",)))
    sweep = made_sweep(tmp_path, methods=("fql", "bc"), parameters=parameters[1:], seeds=(0,))
    assert [run.label for run, _ in planned_runs(sweep)] == ["fql-alpha-1", "fql-alpha-2", "bc"]
    both = made_sweep(tmp_path, parameters=parameters, seeds=(0,))
    assert len(list(choices(both, "fql"))) == 4


def test_runs_are_named_by_what_they_are(tmp_path):
    """Whatever the order, the way a number is written, the steps, and whether the preset says the same."""
    first = made_sweep(tmp_path, settings={"discount": 0.9, "steps": 40}, parameters=(Parameter("alpha", (10, 3)),))
    second = made_sweep(tmp_path, settings={"alpha": 3.0}, parameters=(Parameter("discount", (0.9,)),))
    assert {*names(second)} < {*names(first)}
    assert names(first)[0] == f"smoke/{MAZE}/fql-discount-0.9/seed-0"  # alpha 10 is the preset's
    assert names(second)[0] == f"smoke/{MAZE}/fql-alpha-3-discount-0.9/seed-0"


def test_a_sweep_shares_runs_with_the_paper(tmp_path):
    sweep = made_sweep(tmp_path, methods=("drol",), parameters=(Parameter("num_candidates", (1, 4)),))
    assert {*names(sweep)} == {run.name for run in make_plan("fig4", "smoke", root=tmp_path).runs}


def test_long_names_and_odd_characters_become_a_digest(tmp_path):
    odd = made_sweep(tmp_path, parameters=(Parameter("dataset", ("../a b", "../c")),), seeds=(0,))
    assert all(".." not in name and " " not in name for name in names(odd))
    assert len({*names(odd)}) == 2
    long = made_sweep(tmp_path, settings={"hidden_sizes": (17,) * 40})
    assert len(names(long)[0].split("/")[2]) < 30


def test_hundreds_of_seeds_in_one_process_have_a_name_that_a_file_can_have(tmp_path):
    seeds = tuple(range(300))
    (run, _), (other, _) = planned_runs(made_sweep(tmp_path, seeds=seeds, parameters=(), seeds_per_run=150))
    assert run.name != other.name
    assert max(len(part) for part in (*run.name.split("/"), run.log(tmp_path).name, run.file_name)) < 220


def test_the_file_of_a_run_has_that_run(tmp_path):
    settings = {"hidden_sizes": (8, 8), "standardise_observations": False, "normalise_q": True, "observation_scale": 4}
    for run, _ in planned_runs(made_sweep(tmp_path, settings=settings)):
        written = RunFile.read(Path(run.job(tmp_path).arguments[1]))
        assert written == RunFile(run.config, tmp_path / run.name)
        assert written.config.to_dict() == run.config.to_dict()


def test_added_values_leave_the_runs_that_were_there(tmp_path):
    before = names(made_sweep(tmp_path))
    more = made_sweep(tmp_path, seeds=(0, 1, 2), parameters=(Parameter("alpha", (0.5, 1.0, 2.0, 3.0, 4.0)),))
    assert {*before} < {*names(more)}
    drawn = (Parameter("alpha", (), "log_uniform", 1, 100),)
    few, many = (made_sweep(tmp_path, parameters=drawn, search=Search("random", samples=count)) for count in (3, 9))
    assert {*names(few)} < {*names(many)}
    assert len({*names(many)}) == 18


def test_draws_stay_in_their_range_and_are_spread_over_it():
    whole = [draw(Parameter("batch_size", (), "uniform", 1, 4), "fql", 0, number) for number in range(400)]
    assert {*whole} == {1, 2, 3, 4}
    assert min(whole.count(value) for value in (1, 2, 3, 4)) > 70
    logs = np.log10([draw(Parameter("alpha", (), "log_uniform", 0.01, 100), "fql", 1, n) for n in range(400)])
    assert logs.min() >= -2
    assert logs.max() <= 2
    assert abs(np.mean(logs < 0) - 0.5) < 0.08
    assert draw(Parameter("alpha", (), "uniform", 0, 1), "fql", 2, 3) != draw(
        Parameter("alpha", (), "uniform", 0, 1), "fql", 3, 3
    )


def test_a_grid_that_is_too_large_is_refused_at_once(tmp_path):
    many = tuple(range(1, 1001))
    parameters = (Parameter("batch_size", many), Parameter("alpha", many))
    with pytest.raises(InputError, match="the sweep has 1,000,000 choices for fql"):
        planned_runs(made_sweep(tmp_path, parameters=parameters))


def test_halving_goes_on_with_the_best_share_when_all_of_a_rung_have_ended(tmp_path):
    sweep = made_sweep(tmp_path, search=halving())
    runs = swept_runs(sweep)
    assert {each.run.steps for each in runs} == {20}
    for each in runs[:-1]:
        write_run(each.run, tmp_path)
    assert {each.rung for each in swept_runs(sweep)} == {0}  # one seed of the last choice is missing
    write_run(runs[-1].run, tmp_path)
    rungs = {(each.choice["alpha"], each.rung, each.run.steps, each.dropped) for each in swept_runs(sweep)}
    assert rungs == {(1.0, 0, 20, True), (2.0, 0, 20, True), (3.0, 1, 40, False), (4.0, 1, 40, False)}
    assert {(each.value, each.compared_at) for each in swept_runs(sweep)[-2:]} == {
        (31.0, 20),
        (41.0, 20),
    }  # still known
    for _ in range(2):
        for each in swept_runs(sweep):
            if not each.dropped:
                write_run(each.run, tmp_path)
    done = [each for each in swept_runs(sweep) if not each.dropped]
    assert [(each.choice["alpha"], each.run.steps, each.status.done) for each in done] == [(4.0, 60, True)] * 2


def test_the_lowest_may_be_best_and_a_failure_does_not_go_on(tmp_path):
    sweep = made_sweep(tmp_path, search=halving(goal="lowest", keep=0.25))
    for each in swept_runs(sweep):
        write_run(each.run, tmp_path)
    here = swept_runs(made_sweep(tmp_path, settings={"steps": 20}))
    assert {key[2] for key in survivors(sweep, here)} == {"fql-alpha-1"}
    failed = [each if each.choice["alpha"] > 1 else dataclasses.replace(each, failure="x") for each in here]
    assert {key[2] for key in survivors(sweep, failed)} == {"fql-alpha-2"}
