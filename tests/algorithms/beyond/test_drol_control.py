import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, TINY, assert_close, random_batch

from drol.algorithms.beyond.drol_control import LAG_RATE, DROLControl
from drol.algorithms.parts import clip


def control(winner, **changes):
    return DROLControl(winner=winner, num_candidates=4, hidden_sizes=(16, 16), batch_size=32, **changes)


def trained(algorithm, updates=3):
    """The states before training and after each update, all with the same batches and keys."""
    states = [jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))]
    update = jax.jit(lambda *arguments: algorithm.update(*arguments))
    for number in range(updates):
        states.append(update(states[-1], random_batch(seed=number), jax.random.key(number))[0])
    return states


@pytest.mark.parametrize("changes", [{}, {"q_aggregation": "min", "bc_weight": 0.03, "q_weight": 0.5}])
def test_with_the_nearest_winner_it_is_drol_to_the_bit(changes):
    ours, theirs = trained(control("nearest", **changes))[-1], trained(dataclasses.replace(TINY, **changes))[-1]
    for name in ("actor", "critic", "target_critic"):
        for one, other in zip(
            jax.tree.leaves(getattr(ours, name)), jax.tree.leaves(getattr(theirs, name)), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    assert ours.lagged is None
    batch, key = random_batch(), jax.random.key(5)
    assert control("nearest").diagnose(ours, batch, key) == TINY.diagnose(theirs, batch, key)
    np.testing.assert_array_equal(
        control("nearest").act(ours.policy, batch.observation[0], key, 8),
        TINY.act(theirs.policy, batch.observation[0], key, 8),
    )


def test_the_lagged_copy_covers_half_of_its_way_in_the_half_life():
    assert pytest.approx(0.5) == (1 - LAG_RATE) ** 5_000
    states = trained(control("lagged"))
    expected = states[0].actor.network
    assert_close(states[0].lagged, expected)
    for state in states[1:]:
        expected = jax.tree.map(lambda new, old: LAG_RATE * new + (1 - LAG_RATE) * old, state.actor.network, expected)
        assert_close(state.lagged, expected)


def test_the_lagged_copy_chooses_and_the_actor_learns():
    algorithm = control("lagged")
    first, *_, state = trained(algorithm, 20)
    batch, draws = random_batch(), algorithm.draw(random_batch(), jax.random.key(3))
    other = dataclasses.replace(state, lagged=jax.tree.map(jnp.negative, state.actor.network))
    found = algorithm.choose_winner(other, batch, draws.latent)
    candidates = np.asarray(clip(other.lagged.candidates(batch.observation, draws.latent)))
    index = np.square(candidates - np.asarray(batch.action)[:, None]).sum(-1).argmin(1)
    np.testing.assert_array_equal(found, np.asarray(draws.latent)[np.arange(len(index)), index])
    assert (
        np.asarray(found)
        != np.asarray(control("nearest").choose_winner(dataclasses.replace(state, lagged=None), batch, draws.latent))
    ).any()
    moved = jax.tree.map(lambda new, old: np.abs(new - old).max(), state.actor.network, first.actor.network)
    assert max(jax.tree.leaves(moved)) > 1e-3


def test_a_random_winner_does_not_depend_on_the_data():
    algorithm = control("random")
    state, batch = trained(algorithm)[-1], random_batch()
    latent = algorithm.draw(batch, jax.random.key(3)).latent
    moved = dataclasses.replace(batch, action=-batch.action)
    winner = algorithm.choose_winner(state, batch, latent)
    np.testing.assert_array_equal(winner, algorithm.choose_winner(state, moved, latent))
    assert all((row == draws).all(-1).any() for row, draws in zip(np.asarray(winner), np.asarray(latent), strict=True))
