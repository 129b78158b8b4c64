import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from toys import SPEC, random_batch

from drol.algorithms import DROL, IQL
from drol.algorithms.beyond.drol_auto import DROLAuto

SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}


def made(**hyperparameters):
    algorithm = DROLAuto(**SMALL, **hyperparameters)
    batch = random_batch(16)
    state = algorithm.init(jax.random.key(0), SPEC)
    return algorithm, state, batch, algorithm.draw(batch, jax.random.key(1))


def assert_close(ours, theirs):
    for left, right in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)


def test_the_critic_and_the_value_are_those_of_iql():
    algorithm, state, batch, draws = made()
    same = IQL(**SMALL, expectile=algorithm.expectile, discount=algorithm.discount)
    start = same.init(jax.random.key(0), SPEC)
    names = ("value", "critic", "target_critic")
    start = dataclasses.replace(start, **{name: getattr(state, name) for name in names})
    ours, our_metrics = algorithm.step(state, batch, draws)
    theirs, metrics = same.update(start, batch, jax.random.key(2))
    assert_close([getattr(ours, name) for name in names], [getattr(theirs, name) for name in names])
    for name in ("value_loss", "critic_loss"):
        np.testing.assert_allclose(our_metrics[name], metrics[name], rtol=1e-5)


def test_the_critic_never_asks_the_actor():
    algorithm, state, batch, draws = made()
    other = algorithm.init(jax.random.key(5), SPEC).actor
    ours, _ = algorithm.step(state, batch, draws)
    theirs, _ = algorithm.step(eqx.tree_at(lambda each: each.actor, state, other), batch, draws)
    assert_close((ours.critic, ours.value), (theirs.critic, theirs.value))


def test_routing_is_that_of_drol():
    algorithm, state, batch, draws = made()
    winner, spread = algorithm.route(state.actor.network, batch, draws.latent)
    candidates = np.clip(state.actor.network.candidates(batch.observation, draws.latent), -1, 1)
    np.testing.assert_allclose(spread, candidates.var(1, ddof=1).mean(), rtol=1e-5)
    np.testing.assert_array_equal(winner, DROL(**SMALL).route(state.actor.network, batch, draws.latent))


def test_worth_is_one_in_the_mean_grows_with_advantage_and_knows_no_unit_of_reward():
    algorithm, state, batch, _ = made()
    critic, value = state.critic.network, state.value.network
    worth, scale = algorithm.worth(critic, value, batch)
    advantage = critic(batch.observation, batch.action).min(0) - value(batch.observation)
    np.testing.assert_allclose(worth.mean(), 1, rtol=1e-5)
    np.testing.assert_allclose(scale, np.abs(advantage).mean(), rtol=1e-5)
    assert (np.diff(np.asarray(worth)[np.argsort(advantage)]) >= 0).all()
    same, thousandfold = algorithm.worth(
        lambda *given: 1000 * critic(*given), lambda *given: 1000 * value(*given), batch
    )
    np.testing.assert_allclose(same, worth, rtol=1e-3)
    np.testing.assert_allclose(thousandfold, 1000 * scale, rtol=1e-5)


def test_only_the_winner_learns_and_an_action_outside_the_box_feels_its_way_back():
    algorithm, state, batch, draws = made(q_weight=0.0)
    winner, _ = algorithm.route(state.actor.network, batch, draws.latent)
    worth, q_unit = jnp.ones(16), jnp.asarray(1.0)
    loss, _ = algorithm.actor_loss(state.actor.network, state.critic.network, batch, winner, worth, q_unit)
    output = state.actor.network(batch.observation, winner)
    np.testing.assert_allclose(loss, np.square(output - batch.action).mean(), rtol=1e-5)
    far = eqx.tree_at(lambda each: each.network.layers[-1].bias, state.actor.network, jnp.full(SPEC.action_size, 9.0))
    slope = jax.grad(lambda actor: algorithm.actor_loss(actor, state.critic.network, batch, winner, worth, q_unit)[0])
    assert (slope(far).network.layers[-1].bias > 1).all()


def test_the_average_of_the_actor_acts():
    algorithm, state, batch, draws = made(average_rate=0.25)
    after, _ = algorithm.step(state, batch, draws)
    mixed = jax.tree.map(lambda old, new: 0.75 * old + 0.25 * new, state.average, after.actor.network)
    assert_close(after.policy.actor, mixed)
