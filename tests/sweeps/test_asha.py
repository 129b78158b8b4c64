"""Asynchronous halving by Ray Tune's scheduler, through an executor that trains nothing."""

import sys

import pytest
from made_sweeps import Writer, halving, made_sweep

from drol.errors import InputError
from drol.sweeps.asha import DECISIONS, decisions_of
from drol.sweeps.execute import run_sweep
from drol.sweeps.status import kind_of
from drol.sweeps.sweep import Parameter, Search


@pytest.fixture
def tune():
    pytest.importorskip("ray.tune", reason="Ray Tune is not installed")


def asha(root, values, **changes):
    return made_sweep(root, search=Search("asha", at=(20, 40)), parameters=(Parameter("alpha", values),), **changes)


def finished(runs):
    return [each.choice["alpha"] for each in runs if kind_of(each) == "done"]


def test_a_choice_goes_on_if_it_is_among_the_best_of_those_before_it(tmp_path, tune):
    sweep = asha(tmp_path, (3.0, 1.0, 4.0, 2.0))
    writer = Writer(sweep)
    runs = run_sweep(sweep, writer)
    decided = [(each.label, each.steps, each.goes_on) for each in decisions_of(sweep)]
    assert decided == [
        ("fql-alpha-3", 20, True),  # the first has nobody to be compared with
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


def test_decisions_outlive_the_process(tmp_path, tune):
    sweep = asha(tmp_path, (3.0, 1.0, 4.0, 2.0))
    for most in (6, 4):
        with pytest.raises(Cut):
            run_sweep(sweep, Cutting(sweep, most=most))
    assert len(decisions_of(sweep)) > 1
    assert finished(run_sweep(sweep, Writer(sweep))) == [3.0, 4.0, 3.0, 4.0]
    labels = [(each.label, each.steps) for each in decisions_of(sweep)]
    assert len({*labels}) == len(labels)


def test_a_choice_with_a_run_that_failed_does_not_go_on(tmp_path, tune):
    sweep = asha(tmp_path, (3.0, 4.0))
    runs = run_sweep(sweep, Writer(sweep, broken="alpha-4/seed-1"))
    assert finished(runs) == [3.0, 3.0]
    assert [(kind_of(each), each.state.step) for each in runs if each.choice["alpha"] == 4.0] == [
        ("dropped", 20),
        ("failed", 0),
    ]


def test_the_lowest_may_be_best(tmp_path, tune):
    search = Search("asha", at=(20,), metric="critic_loss", goal="lowest")
    sweep = made_sweep(tmp_path, search=search, parameters=(Parameter("alpha", (4.0, 1.0)),), seeds=(0,))
    assert finished(run_sweep(sweep, Writer(sweep))) == [4.0]


def test_a_mistake_is_one_line(tmp_path, monkeypatch, tune):
    sweep = asha(tmp_path, (3.0, 4.0))
    (tmp_path / "sweeps" / "made").mkdir(parents=True)
    (tmp_path / "sweeps" / "made" / DECISIONS).write_text("broken\n")
    with pytest.raises(InputError, match="has a line that is no decision"):
        run_sweep(sweep, Writer(sweep))
    with pytest.raises(InputError, match="must be rising steps"):
        halving(at=(40, 20))
    monkeypatch.setitem(sys.modules, "ray.tune.schedulers", None)
    with pytest.raises(InputError, match="needs Ray Tune; install it with: pip install 'drol\\[ray\\]'"):
        run_sweep(sweep, Writer(sweep))
