"""Runs without a simulator are compared by data alone, with intervals and without a verdict."""

import numpy as np
import pytest
from toys import random_rows, saved_run, tiny_config, tiny_task

import drol
from drol.algorithms.bc import BC
from drol.cli.main import main
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.results.offline_comparison import compare_offline, estimate, has_only_data
from drol.runs.records import EvaluationRow, OfflineRow
from drol.runs.run import Run, open_run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A run of two seeds and one of another method, with offline values."""
    monkeypatch.setattr(Run, "task", tiny_task(None, validation=Dataset.from_rows(**random_rows([20, 30, 25], seed=1))))
    for name, changes in (("drol", {}), ("bc", {"algorithm": BC(hidden_sizes=(8,), batch_size=8), "seeds": (0,)})):
        config = tiny_config(**changes)
        directory = saved_run(tmp_path / name, config, (6, 12))
        for seed in config.seeds:
            directory.log_evaluation(EvaluationRow(12, seed, offline={"outside_support": 0.1}))
            figures = {"value": -5.0 - seed, "value_low": -9.0, "value_high": -1.0, "outside_support": 0.1}
            directory.log_offline_evaluation(OfflineRow(12, seed, 1, 0.99, 10, True, 1.0, figures))
    return [tmp_path / "drol", tmp_path / "bc"]


def test_each_number_has_an_interval_and_there_is_no_verdict(runs, capsys):
    assert main(["compare", *map(str, runs)]) == 0
    printed = capsys.readouterr().out
    first, titles, *lines = printed.splitlines()
    assert first == "toy: newest policies, evaluated on data"
    assert titles.split()[:4] == ["group", "seeds", "updates", "error"]
    assert [line.split()[0] for line in lines[:2]] == ["drol", "bc"]
    assert "note: value is a fitted-Q estimate from data" in printed
    assert "better" not in printed.replace("does not mean a better policy", "")
    comparison = compare_offline(runs)
    group = comparison.groups[0]
    assert (group.seeds, group.steps, comparison.discount) == (2, (12,), 0.99)
    for each in (group.error, group.outside, group.value, comparison.groups[1].error):
        assert each.interval.low <= each.mean <= each.interval.high
        assert each.interval.low < each.interval.high
    assert group.value.mean == -8.5
    assert (group.warning is not None) == (group.outside.mean > 0.25)


def test_trajectories_are_what_is_drawn_again():
    values = np.asarray([[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]])
    found = estimate(values, np.asarray([0, 0, 0, 1, 1, 1]))
    assert (found.mean, found.interval) == (0.5, (0.0, 1.0))  # two clusters, not six values
    assert estimate(values, np.zeros(6)).interval is None  # one trajectory of one seed
    two_seeds = estimate(np.concatenate([values, values + 0.2]), np.arange(6))
    assert two_seeds.interval.high > 1.5  # Student's interval of two seeds


def test_what_is_for_scores_is_refused(runs, capsys):
    assert main(["compare", str(runs[0]), "--baseline", "drol"]) == 2
    assert "--baseline compares scores, but these runs have no simulator" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"use drol\.compare_offline"):
        drol.compare(runs)


def test_runs_with_scores_are_not_compared_by_data(tmp_path, runs):
    assert has_only_data(open_run(runs[0]))
    scored = saved_run(tmp_path / "scored", tiny_config(), (12,))
    scored.log_evaluation(EvaluationRow(12, 0, 50.0))
    assert not has_only_data(open_run(tmp_path / "scored"))
