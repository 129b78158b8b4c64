import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_mechanism import made_row, made_rows
from toys import SPEC, TINY, random_state, saved_run, tiny_config, tiny_task, with_outputs_scaled

import drol
from drol.errors import InputError
from drol_reproduction import mechanism
from drol_reproduction.mechanism import (
    Routed,
    add_rows,
    compare_ownership,
    continued,
    measure_mechanism,
    measure_runs,
    pair_distance,
    read_mechanism,
    spread_of,
    write_mechanism,
)

LAGS = (1, 3, 6)


@pytest.fixture(autouse=True)
def few_states(monkeypatch):
    monkeypatch.setattr(mechanism, "STATES", 48)
    monkeypatch.setattr(mechanism, "BANK", 32)


def trained(path, **changes):
    """A run of 12 updates with the checkpoints of steps 6 and 12."""
    values = {"checkpoint_interval": 6, "evaluation_episodes": 0, "seeds": (0, 7)} | changes
    task = tiny_task(environment=None)
    drol.train(tiny_config(**values), path, task, quiet=True)
    return drol.open_run(path, task=task)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("mechanism") / "run")


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_training_continues_as_the_run_did_and_nothing_is_written(run):
    before = files_of(run.path)
    *_, (_, lag, states) = continued(run, 6, LAGS)
    assert lag == 6
    for number, seed in enumerate(run.config.seeds):
        ours = jax.tree.map(lambda leaf, number=number: leaf[number], states.policy)
        theirs = run.policy(12, seed).networks
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_array_equal(one, other)
    assert files_of(run.path) == before


def test_a_row_for_each_seed_and_lag_and_the_same_rows_again(run):
    rows = measure_mechanism(run, 6, LAGS)
    assert [(row.seed, row.step, row.lag) for row in rows] == [(seed, 6, lag) for seed in (0, 7) for lag in LAGS]
    assert rows == measure_mechanism(run, 6, LAGS)
    for row in rows:
        assert row.nearest_if_kept >= row.nearest_after
        assert row.stable + row.handed_over + row.collapsed == pytest.approx(1)
        assert 1 <= row.old_rank <= 16
    assert {row.step for row in measure_mechanism(run, lags=(1,))} == {12}


def test_an_actor_that_does_not_learn_hands_nothing_over(tmp_path):
    still = trained(tmp_path / "run", algorithm=dataclasses.replace(TINY, learning_rate=1e-12), seeds=(0,))
    (row,) = measure_mechanism(still, lags=(3,))
    assert (row.changed, row.latent_distance, row.old_rank, row.movement) == (0, None, 1, 0)
    assert (row.rose_changed, row.rose_kept, row.rose_other, row.handed_over) == (None, 0, 0, 0)
    assert row.nearest_before == row.nearest_after == row.nearest_if_kept


def routed(candidates, action):
    distance = np.linalg.norm(candidates - action[:, None], axis=-1)
    return Routed(candidates, distance, distance.argmin(1))


def test_the_numbers_of_a_handover_by_hand(monkeypatch):
    """Two states of three candidates in one dimension; in the first the owner climbs away and another takes over."""
    monkeypatch.setattr(mechanism, "DRAWS", 3)
    action = np.asarray([[0.0], [0.0]])
    before = routed(np.asarray([[[0.1], [-0.3], [0.9]], [[0.1], [-0.3], [0.9]]]), action)
    after = routed(np.asarray([[[0.7], [-0.2], [0.9]], [[0.05], [-0.3], [0.8]]]), action)
    followed = types.SimpleNamespace(
        observation=jnp.zeros((2, 1)), latent=np.asarray([[[0.0], [2.0], [5.0]]] * 2), latent_distance=4.0
    )

    def critic(observation, actions):
        return jnp.stack([actions[:, 0], actions[:, 0] + 1])  # so the minimum is the action

    found = compare_ownership(before, after, jax.tree_util.Partial(critic), followed)
    assert found == pytest.approx(
        {
            "changed": 0.5,
            "latent_distance": 2 / 4,
            "old_rank": (2 + 1) / 2,
            "movement": (0.6 + 0.05) / 2 / np.sqrt((0.4**2 + 0.8**2 + 1.2**2) / 3),
            "rose_changed": 1.0,
            "rose_kept": 0.0,
            "rose_other": 0.5,  # the second candidate: up in the first state, where it was in the other
            "nearest_before": 0.1,
            "nearest_after": (0.2 + 0.05) / 2,
            "nearest_if_kept": (0.7 + 0.05) / 2,
        }
    )


def test_the_distance_of_pairs_is_that_of_all_different_pairs():
    actions = np.random.default_rng(0).normal(size=(3, 5, 2))
    squares = np.square(actions[:, :, None] - actions[:, None]).sum(-1)
    np.testing.assert_allclose(pair_distance(actions), np.sqrt(squares.sum((1, 2)) / 20))


def test_a_collapsed_actor_is_seen_and_one_that_spreads_like_the_data_is_not(run, monkeypatch):
    monkeypatch.setattr(mechanism, "SPREAD_DRAWS", 8)
    trainer, *_ = next(continued(run, 12, LAGS))
    followed = mechanism.follow(trainer, "ball")
    actor = random_state(TINY, spec=SPEC).actor.network
    whole, collapsed = spread_of(with_outputs_scaled(actor, 0.0), followed)
    assert whole == 0
    assert collapsed.all()
    own, _ = spread_of(actor, followed)
    same = followed._replace(data_spread=np.full(48, own * followed.data_spread.mean()))
    assert spread_of(actor, same)[0] == pytest.approx(1)
    assert spread_of(actor, same)[1].mean() < 0.5


def test_methods_with_a_tether_are_followed_with_latents_of_their_own_prior(tmp_path):
    tethered = trained(tmp_path / "run", algorithm=drol.FQL(hidden_sizes=(8,), batch_size=8), seeds=(0,))
    (row,) = measure_mechanism(tethered, lags=(2,))
    assert (row.method, row.setting("alpha"), row.setting("num_candidates")) == ("fql", 10.0, None)
    assert np.linalg.norm(mechanism.draw_prior(jax.random.key(0), (1000, 2), "ball"), axis=1).max() < 1.5
    assert np.linalg.norm(mechanism.draw_prior(jax.random.key(0), (1000, 2), "normal"), axis=1).max() > 2.5


def test_what_cannot_be_measured_says_what_it_needs(run, tmp_path):
    saved_run(tmp_path / "bc", tiny_config(algorithm=drol.BC(hidden_sizes=(8,))), (12,))
    with pytest.raises(InputError, match=r"bc has no candidates to follow; .* give a run of drol, .*fql"):
        measure_runs([tmp_path / "bc"])
    saved_run(tmp_path / "new", tiny_config(), (12,))
    with pytest.raises(InputError, match="no checkpoint to continue from; train the run first"):
        measure_runs([tmp_path / "new"])
    with pytest.raises(InputError, match="no checkpoint of step 9; it has 6, 12"):
        measure_mechanism(run, 9)
    with pytest.raises(InputError, match="contains no runs"):
        measure_runs([tmp_path / "bc" / "policies"])


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [*made_rows(), made_row(changed=0.0, latent_distance=None, rose_changed=None)]
    write_mechanism(rows, tmp_path / "rows.csv")
    assert read_mechanism(tmp_path / "rows.csv") == rows


def test_rows_of_other_runs_and_checkpoints_stay_and_those_of_the_same_are_replaced():
    one, other, earlier = made_row(), made_row(settings={"q_weight": 0.0}), made_row(step=10_000)
    stale = [made_row(changed=0.1), made_row(lag=3)]
    assert add_rows([other, *stale, earlier], [one]) == [other, earlier, one]  # sorted


def test_other_files_are_rejected(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="the columns are not those of `drol paper mechanism`"):
        read_mechanism(path)
    for changes, words in (({"lag": "x"}, "lag is 'x'; it must be a whole number"), ({"spread": ""}, "spread is ''")):
        write_mechanism([made_row(**changes)], path)
        with pytest.raises(InputError, match=f"line 2: {words}"):
            read_mechanism(path)
    write_mechanism([dataclasses.replace(made_row(), settings="[]")], path)
    with pytest.raises(InputError, match=r"line 2: settings is '\[\]'; it must be settings as JSON"):
        read_mechanism(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a file of `drol paper mechanism`"):
        read_mechanism(path)
