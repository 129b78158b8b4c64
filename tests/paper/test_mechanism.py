import dataclasses

import jax
import numpy as np
import pytest
from toys import TINY, saved_run, tiny_config, tiny_task

import drol
from drol.errors import InputError
from drol.paper import mechanism
from drol.paper.mechanism import (
    Q_STEP,
    add_rows,
    follow,
    mean_hold,
    measure_mechanism,
    read_mechanism,
    route,
    write_mechanism,
)


@pytest.fixture(autouse=True)
def few_states(monkeypatch):
    monkeypatch.setattr(mechanism, "STATES", 64)
    monkeypatch.setattr(follow, "__defaults__", (64,))


@pytest.fixture
def run(tmp_path):
    """A run with policies of three steps, which are all the same."""
    saved_run(tmp_path / "run", tiny_config(), (0, 4, 8, 12))
    return drol.open_run(tmp_path / "run", task=tiny_task())


def test_routing_agrees_with_numpy(run):
    followed = follow(run)
    policy = run.policy(12, 0)
    routed = route(policy, followed.observation, followed.action, followed.latent)
    candidates, action = np.asarray(routed.candidates), np.asarray(followed.action)
    distance = np.square(candidates - action[:, None]).sum(-1)
    assert np.asarray(routed.winner).tolist() == distance.argmin(1).tolist()
    winners = candidates[np.arange(len(action)), distance.argmin(1)]
    moved = np.asarray(routed.moved)
    inside = (np.abs(moved) < 1).all(1)
    lengths = np.linalg.norm(moved - winners, axis=1)
    np.testing.assert_allclose(lengths[inside], Q_STEP * action.shape[1] ** 0.5, rtol=1e-4)
    distance[np.arange(len(action)), distance.argmin(1)] = np.square(moved - action).sum(1)
    assert np.asarray(routed.winner_after).tolist() == distance.argmin(1).tolist()
    critic = jax.vmap(lambda s, a: policy.networks.critic(s, a).min(0))
    np.testing.assert_allclose(routed.q_winner, critic(followed.observation, winners), atol=1e-5)
    assert (np.asarray(critic(followed.observation, moved))[inside] >= np.asarray(routed.q_winner)[inside] - 0.05).all()


def test_a_policy_that_stays_the_same_hands_nothing_over(run):
    rows = measure_mechanism(run)
    assert [(row.seed, row.step) for row in rows] == [(seed, step) for seed in (0, 7) for step in (4, 8, 12)]
    assert [row.handover for row in rows[:3]] == [None, 0, 0]
    assert [row.held for row in rows[:3]] == [4, 8, 12]
    assert 0 < rows[0].cold < 1


def test_one_candidate_owns_everything(tmp_path):
    algorithm = dataclasses.replace(TINY, num_candidates=1)
    saved_run(tmp_path / "run", tiny_config(algorithm=algorithm), (0, 6, 12))
    rows = measure_mechanism(drol.open_run(tmp_path / "run", task=tiny_task()))
    assert {(row.candidates, row.handoff, row.q_gap) for row in rows} == {(1, 0, 0)}


def test_how_long_owners_hold():
    owners = [np.asarray([1, 2, 3]), np.asarray([1, 5, 3]), np.asarray([1, 5, 4]), np.asarray([1, 5, 3])]
    # one stretch of 4; stretches of 1 and 3; of 2, 1 and 1
    assert mean_hold(owners) == 12 / 6


def test_rows_are_read_as_they_were_written(run, tmp_path):
    rows = measure_mechanism(run)
    write_mechanism(rows, tmp_path / "rows.csv")
    found = read_mechanism(tmp_path / "rows.csv")
    assert [(row.task, row.seed, row.step, row.handover) for row in found] == [
        (row.task, row.seed, row.step, row.handover) for row in rows
    ]
    assert found[0].q_gap == pytest.approx(rows[0].q_gap, rel=1e-5)


def test_rows_of_other_runs_stay_and_those_of_the_same_run_are_replaced(run):
    rows = measure_mechanism(run)
    first, other = rows[:3], dataclasses.replace(rows[0], candidates=64)
    stale = [dataclasses.replace(row, held=99) for row in first]
    assert add_rows([other, *stale], first) == [*first, other]


def test_a_method_that_does_not_route_and_other_files_are_refused(tmp_path):
    config = tiny_config(algorithm=drol.BC(hidden_sizes=(8,)))
    saved_run(tmp_path / "run", config, (0, 12))
    with pytest.raises(InputError, match="is of bc, which routes nothing; give a run of drol"):
        measure_mechanism(drol.open_run(tmp_path / "run", task=tiny_task()))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is not a file of `drol paper mechanism`"):
        read_mechanism(tmp_path / "other.csv")
