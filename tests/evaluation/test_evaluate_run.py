"""The evaluation of saved policies, from Python."""

import dataclasses
import functools
import json

import pytest
from fake_environments import Walk
from toys import TINY, saved_run, tiny_config, tiny_task

from drol.algorithms import BC, DROLChoice
from drol.errors import InputError
from drol.evaluation import fitted_q
from drol.evaluation.episodes import EnvironmentFailed, Evaluator
from drol.evaluation.evaluate_run import evaluate, evaluate_offline
from drol.runs.run import open_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of two seeds with three saved policies."""
    monkeypatch.setattr(fitted_q, "START_UPDATES", 20)
    saved_run(tmp_path / "run", tiny_config(), (0, 6, 12))
    return open_run(tmp_path / "run", task=tiny_task())


def test_episodes_are_played_with_the_newest_policy_of_every_seed_and_recorded(run):
    told = []
    rows = evaluate(run, episodes=3, best_of=4, processes=2, report=lambda *words: told.append(words))
    assert [(row.step, row.seed, row.best_of, len(row.episodes)) for row in rows] == [(12, 0, 4, 3), (12, 7, 4, 3)]
    assert all(row.score == pytest.approx(100 * row.successes / 3) for row in rows)
    assert run.extra_evaluations == rows
    assert run.evaluations == []
    assert told == [(done, 6, f"seed {seed}") for seed, first in ((0, 0), (7, 3)) for done in range(first, first + 4)]
    again = evaluate(run, episodes=2, best_of=4, first_seed=5, processes=2, replace=True)
    assert run.extra_evaluations == again
    assert [episode.seed for episode in again[0].episodes] == [5, 6]
    assert [row.best_of for row in evaluate(run, episodes=1, step=6, processes=1)] == [1, 1]
    assert [(row.step, row.best_of) for row in run.extra_evaluations] == [(12, 4), (12, 4), (6, 1), (6, 1)]


def test_acting_may_be_changed_for_an_evaluation_which_has_rows_of_its_own(tmp_path, monkeypatch):
    algorithm = DROLChoice(hidden_sizes=(16, 16), batch_size=32, num_candidates=4)
    saved_run(tmp_path / "run", tiny_config(algorithm=algorithm), (12,))
    run = open_run(tmp_path / "run", task=tiny_task())
    seen = []
    play = Evaluator.run
    monkeypatch.setattr(Evaluator, "run", lambda self, policy, *rest: seen.append(policy) or play(self, policy, *rest))
    plain = evaluate(run, episodes=2, best_of=8, processes=1)
    changed = evaluate(run, episodes=2, best_of=8, processes=1, support_weight=2.0, chooser="min")
    assert [policy.algorithm.support_weight for policy in seen] == [0, 0, 2, 2]
    assert changed[0].acting == {"support_weight": 2.0, "chooser": "min"}
    assert changed[0].columns()["support_weight"] == 2
    assert run.extra_evaluations == [*plain, *changed]
    again = evaluate(run, episodes=2, best_of=8, processes=1, support_weight=2.0, chooser="min")
    assert run.extra_evaluations == [*plain, *again]
    with pytest.raises(InputError, match="chooser is given, but there is nothing to choose of 1 draw"):
        evaluate(run, best_of=1, chooser="min")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bc_weight": 3.0}, "of the hyperparameters of DROL evaluations may change nothing"),
        ({"episodes": 0}, "episodes is 0; it must be a whole number of at least 1"),
        ({"episodes": 2.5}, "episodes is 2.5; it must be a whole number of at least 1"),
        ({"best_of": 0}, "best_of is 0"),
        ({"first_seed": -1}, "first_seed is -1; it must be a whole number of at least 0"),
        ({"first_seed": 2**32 - 1, "episodes": 2}, "first_seed is 4294967295"),
        ({"first_seed": 2**32, "episodes": 1}, "first_seed is 4294967296"),
        ({"first_seed": 99999999999}, "first_seed is 99999999999"),
        ({"processes": 0}, "processes is 0; it must be a whole number of at least 1"),
        ({"step": 5}, "no policy of step 5 in"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_played(run, changes, message):
    with pytest.raises(InputError, match=message):
        evaluate(run, **changes)
    assert run.extra_evaluations == []


def test_best_of_is_refused_for_a_method_that_draws_nothing(tmp_path):
    config = tiny_config(algorithm=BC(hidden_sizes=(8,)), seeds=(0,))
    saved_run(tmp_path / "run", config, (0,))
    run = open_run(tmp_path / "run", task=tiny_task())
    for judge in (evaluate, evaluate_offline):
        with pytest.raises(InputError, match="best_of is 4"):
            judge(run, best_of=4)


def test_a_task_without_an_environment_is_not_played(tmp_path):
    saved_run(tmp_path / "run", tiny_config(), (0,))
    run = open_run(tmp_path / "run", task=tiny_task(environment=None))
    with pytest.raises(InputError, match="the task toy has no environment to evaluate in"):
        evaluate(run)


def test_fewer_episodes_do_not_take_the_place_of_more_unless_that_is_asked_for(run):
    first = evaluate(run, episodes=2, processes=1)
    with pytest.raises(InputError) as caught:
        evaluate(run, episodes=1, processes=1)
    assert str(caught.value) == (
        f"{run.path}: step 12, seed 0, best of 1 has 2 stored episodes; 1 would replace them; play at least as "
        "many, or give --replace"
    )
    assert run.extra_evaluations == first
    assert evaluate(run, episodes=1, processes=1, step=6)[0].step == 6  # of another step
    assert evaluate(run, episodes=1, processes=1, replace=True) == run.extra_evaluations[-2:]


def test_an_evaluation_of_which_every_episode_failed_is_not_recorded(run):
    first = evaluate(run, episodes=1, processes=1)
    run.task = tiny_task(make_environment=functools.partial(Walk, "raises in reset", 0))
    with pytest.raises(EnvironmentFailed, match="all 1 episodes of seed 0 failed: RuntimeError: no such maze"):
        evaluate(run, episodes=1, processes=1)
    assert run.extra_evaluations == first


def test_a_damaged_line_is_set_aside_and_named_when_a_row_is_recorded(run, caplog):
    path = run.path / "extra_evaluations.jsonl"
    path.write_text("nonsense\n")
    rows = evaluate(run, episodes=1, processes=1)
    assert run.damaged
    words = f"{path}: line 1: not JSON (Expecting value: line 1 column 1 (char 0)); set aside in {path.name}.bad"
    assert words in caplog.messages
    assert run.extra_evaluations == rows
    assert (run.path / f"{path.name}.bad").read_text() == "nonsense\n"


def test_failures_are_counted(run):
    run.task = tiny_task(make_environment=functools.partial(Walk, "raises in reset", 1))
    rows = evaluate(run, episodes=3, processes=2)
    assert [row.failures for row in rows] == [["RuntimeError: no such maze"]] * 2


def test_rows_of_an_offline_evaluation_are_recorded_and_a_repeated_one_replaces_the_first(run):
    run.config = dataclasses.replace(run.config, algorithm=dataclasses.replace(TINY, discount=0.7))
    rows = evaluate_offline(run, updates=3)
    assert [(row.step, row.seed) for row in rows] == [(12, 0), (12, 7)]
    assert rows[0].discount == 0.99  # the same for all runs
    assert rows[0].unseen is True
    assert run.offline_evaluations == rows
    seen, told = [], []
    again = evaluate_offline(
        run, every_step=True, updates=3, discount=0.5, on_row=seen.append, report=lambda *words: told.append(words)
    )
    assert [done for done, _, _ in told] == [0, 0, *range(7)]
    assert {total for _, total, _ in told} == {6}
    assert told[2][2] == "step 0, seed 0: 3 updates of fitted-Q evaluation"
    assert [(row.step, row.seed) for row in again] == [(step, seed) for step in (0, 6, 12) for seed in (0, 7)]
    assert seen == again == run.offline_evaluations
    lines = run.directory.offline_file.read_text().splitlines()
    json.loads(lines[0], parse_constant=lambda name: pytest.fail(name))
    run.directory.rewind(6)
    assert [row.step for row in run.offline_evaluations] == [0, 0, 6, 6]


def test_rows_that_are_known_survive_an_interruption(run):
    def interrupt(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_offline(run, every_step=True, updates=3, on_row=interrupt)
    assert [(row.step, row.seed) for row in run.offline_evaluations] == [(0, 0)]


def test_what_makes_no_sense_is_refused_before_anything_is_judged(run):
    with pytest.raises(InputError, match=r"no policy of step 5 in .*; it has 0, 6, 12"):
        evaluate_offline(run, step=5)
    with pytest.raises(InputError, match="updates is 0; it must be a whole number of at least 1"):
        evaluate_offline(run, updates=0)
    with pytest.raises(InputError, match="step 6 and every_step exclude each other"):
        evaluate_offline(run, step=6, every_step=True)
