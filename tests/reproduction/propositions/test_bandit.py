import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drol.algorithms.drol import DROL
from drol.algorithms.fql import FQL
from drol.transition import Spec
from drol_reproduction.propositions import bandit
from drol_reproduction.propositions.bandit import BETTER, OPTIMUM, OTHER, RADIUS, WEIGHTS, Outcome, inside, true_reward

TINY = {"hidden_sizes": (8,), "batch_size": 32}


def outcome(method, weight, actions):
    """Of two seeds that do the same."""
    learned = method != "bc"
    critic = bandit.grid().sum(-1) if learned else None
    pulls = np.stack([actions, actions + np.asarray([0.3, 0.4])]) if learned else None
    return Outcome(method, weight, np.stack([actions, actions]), critic, pulls)


def outcomes():
    """BC between the modes; FQL and DROL at the optimum for one weight each, at the other mode for the rest."""
    at = {True: np.tile(OPTIMUM, (10, 1)), False: np.tile(OTHER, (10, 1))}
    return {
        "bc": [outcome("bc", None, np.zeros((10, 2)))],
        "fql": [outcome("fql", weight, at[weight == 0.3]) for weight in WEIGHTS],
        "drol": [outcome("drol", weight, at[weight == 3.0]) for weight in WEIGHTS],
    }


def test_the_best_action_is_inside_the_data_off_its_centre_and_the_mean_of_the_modes_is_worth_nothing():
    np.testing.assert_allclose(true_reward(np.stack([OPTIMUM, OTHER, (BETTER + OTHER) / 2])), [1, 0.7, 0])
    assert true_reward(BETTER) == pytest.approx(1 - 1.5 * 0.25**2)
    assert 0 < np.linalg.norm(OPTIMUM - BETTER) < RADIUS
    assert true_reward(bandit.grid(401)).max() == pytest.approx(1, abs=1e-3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_all_data_is_in_the_two_discs_and_pays_the_truth_but_for_noise(seed):
    count = 101
    pulls = bandit.bandit_data(count, noise=0.0, seed=seed).take(np.arange(count))
    action = np.asarray(pulls.action, np.float64)
    centre = np.where(np.arange(count)[:, None] % 2, OTHER, BETTER)
    assert (np.linalg.norm(action - centre, axis=1) <= RADIUS + 1e-6).all()
    within = np.linalg.norm(action - centre, axis=1) < RADIUS - 1e-6  # rounding to float32 may cross the edge
    np.testing.assert_allclose(np.asarray(pulls.reward)[within], true_reward(action)[within], atol=1e-5)
    assert not np.asarray(pulls.continues).any()


def test_an_outcome_counts_reward_share_inside_and_distance_from_the_optimum():
    actions = np.stack([OPTIMUM, BETTER, OTHER, np.zeros(2)])
    found = outcome("drol", 1.0, actions)
    assert inside(actions).tolist() == [True, True, True, False]
    np.testing.assert_allclose(found.reward, (1 + (1 - 1.5 * 0.25**2) + 0.7 + 0) / 4)
    np.testing.assert_allclose(found.inside, 0.75)
    np.testing.assert_allclose(found.distance, 0.25 / 2)  # of the two in the better disc
    assert np.isnan(outcome("bc", None, np.zeros((3, 2))).distance).all()


def test_the_best_weight_is_the_one_with_the_highest_reward():
    found = outcomes()
    assert bandit.best(found["fql"]).weight == 0.3
    assert bandit.best(found["drol"]).weight == 3.0


def test_fql_pulls_a_sample_to_its_teacher_and_drol_the_nearest_candidate_to_the_data():
    data = bandit.bandit_data(200)
    many, one, fql = DROL(**TINY, num_candidates=16), DROL(**TINY, num_candidates=1), FQL(**TINY)
    drol_state, fql_state = (algorithm.init(jax.random.key(0), Spec((1,), 2)) for algorithm in (many, fql))
    of_sixteen, of_one, tethered = (
        np.asarray(bandit.cloning_pulls(algorithm, state, data))
        for algorithm, state in ((many, drol_state), (one, drol_state), (fql, fql_state))
    )
    length = [np.linalg.norm(pulled - towards, axis=1).mean() for pulled, towards in (of_sixteen, of_one)]
    assert length[0] < length[1]
    np.testing.assert_array_equal(of_sixteen[1], of_one[1])
    assert inside(of_sixteen[1] * (1 - 1e-6)).mean() > 0.95  # data
    assert not inside(tethered[1]).all()  # what an untrained flow makes of noise


def test_figure_and_table_show_the_best_of_each_method(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bandit, "sweep", lambda seeds, updates: outcomes() if (len(seeds), updates) == (3, 7) else {})
    path = tmp_path / "new" / "bandit.png"
    bandit.main(["--updates", "7", "--out", str(path)])
    assert path.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "| BC | - | 0.00 (0.00 to 0.00) | 0.00 (0.00 to 0.00) | - |" in printed
    assert "| DROL | 3 | 1.00 (1.00 to 1.00) | 1.00 (1.00 to 1.00) | 0.00 (0.00 to 0.00) |" in printed
    assert str(path) in printed
    titles = [axes.get_title() for axes in bandit.bandit_figure(outcomes()).axes]
    assert titles[:3] == ["BC", "FQL, weight 0.3", "DROL, weight 3"]
