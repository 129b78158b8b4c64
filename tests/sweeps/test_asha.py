"""Asynchronous halving, through an executor that trains nothing."""

import json
from pathlib import Path

import pytest
from made_sweeps import Writer, halving, made_sweep

from drol.errors import InputError
from drol.sweeps.asha import DECISIONS, decisions_of, is_among_best
from drol.sweeps.execute import run_sweep
from drol.sweeps.status import kind_of
from drol.sweeps.sweep import Parameter, Search

RECORDED = json.loads((Path(__file__).parent / "asha_decisions.json").read_text())


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['goal']}-{each['keep']:.3g}")
def test_decisions_are_those_of_ray_tune(recorded):
    """Decisions of `AsyncHyperBandScheduler` of Ray 2.60, on one rung, in the order of `values`."""
    values, goal, keep = recorded["values"], recorded["goal"], recorded["keep"]
    decided = [is_among_best(value, values[:number], goal, keep) for number, value in enumerate(values)]
    assert "".join(str(int(each)) for each in decided) == recorded["goes_on"]


def asha(root, values, **changes):
    return made_sweep(root, search=Search("asha", at=(20, 40)), parameters=(Parameter("alpha", values),), **changes)


def finished(runs):
    return [each.choice["alpha"] for each in runs if kind_of(each) == "done"]


def test_a_choice_goes_on_if_it_is_among_the_best_of_those_before_it(tmp_path):
    sweep = asha(tmp_path, (3.0, 1.0, 4.0, 2.0))
    writer = Writer(sweep)
    runs = run_sweep(sweep, writer)
    decided = [(each.label, each.steps, each.goes_on) for each in decisions_of(sweep)]
    assert decided == [
        ("fql-alpha-3", 20, True),  # the first run has no run to compare with
        ("fql-alpha-1", 20, False),
        ("fql-alpha-4", 20, True),
        ("fql-alpha-2", 20, False),  # below the median of 3, 1 and 4
        ("fql-alpha-3", 40, True),
        ("fql-alpha-4", 40, True),
    ]
    assert finished(runs) == [3.0, 4.0, 3.0, 4.0]
    assert {each.choice["alpha"] for each in runs if each.dropped} == {1.0, 2.0}
    assert len(writer.names) == 8 + 4 + 4
    assert [each.value for each in runs if each.choice["alpha"] == 4.0] == [40.0, 41.0]
    again = Writer(sweep)
    run_sweep(sweep, again)
    assert again.names == []


class Cut(BaseException):
    """Ends a sweep as a kill does."""


class Cutting(Writer):
    def execute(self, jobs, on_finished, keep_going):
        super().execute(jobs, on_finished, keep_going)
        if len(self.names) == self.most:
            raise Cut


def test_decisions_outlive_the_process(tmp_path):
    sweep = asha(tmp_path, (3.0, 1.0, 4.0, 2.0))
    for most in (6, 4):
        with pytest.raises(Cut):
            run_sweep(sweep, Cutting(sweep, most=most))
    assert len(decisions_of(sweep)) > 1
    assert finished(run_sweep(sweep, Writer(sweep))) == [3.0, 4.0, 3.0, 4.0]
    labels = [(each.label, each.steps) for each in decisions_of(sweep)]
    assert len({*labels}) == len(labels)


def test_a_choice_with_a_run_that_failed_does_not_go_on(tmp_path):
    sweep = asha(tmp_path, (3.0, 4.0))
    runs = run_sweep(sweep, Writer(sweep, broken="alpha-4/seed-1"))
    assert finished(runs) == [3.0, 3.0]
    assert [(kind_of(each), each.status.step) for each in runs if each.choice["alpha"] == 4.0] == [
        ("dropped", 20),
        ("failed", 0),
    ]


def test_the_lowest_may_be_best(tmp_path):
    search = Search("asha", at=(20,), metric="critic_loss", goal="lowest")
    sweep = made_sweep(tmp_path, search=search, parameters=(Parameter("alpha", (4.0, 1.0)),), seeds=(0,))
    assert finished(run_sweep(sweep, Writer(sweep))) == [4.0]


def test_a_mistake_is_one_line(tmp_path):
    sweep = asha(tmp_path, (3.0, 4.0))
    (tmp_path / "sweeps" / "made").mkdir(parents=True)
    (tmp_path / "sweeps" / "made" / DECISIONS).write_text("broken\n")
    with pytest.raises(InputError, match="remove that line"):
        run_sweep(sweep, Writer(sweep))
    with pytest.raises(InputError, match="must be rising steps"):
        halving(at=(40, 20))
