import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from one_pass import one_pass_loss, one_pass_step
from toys import ACTION_SIZE, TINY, Echo, assert_close, random_batch, random_draws, random_state, with_outputs_scaled

from drol.algorithms.drol import DROL, Policy
from drol.algorithms.routing import Draws, candidate_diagnostics, draw_latents

VARIANTS = [(count, *ways) for count in (1, 4, 16) for ways in (("mean", "min"), ("min", "mean"))]


@pytest.mark.parametrize(("count", "q_aggregation", "actor_aggregation"), VARIANTS)
def test_a_step_equals_that_of_the_plain_formulation(count, q_aggregation, actor_aggregation):
    algorithm = DROL(
        num_candidates=count,
        q_aggregation=q_aggregation,
        actor_aggregation=actor_aggregation,
        bc_weight=0.7,
        q_weight=1.3,
        hidden_sizes=(16, 16),
    )
    state, batch, draws = random_state(algorithm), random_batch(), random_draws(count)
    candidates = state.actor.network.candidates(batch.observation, draws.latent)
    assert 0.02 < (np.abs(candidates) > 1).mean() < 0.5  # clipping matters, but not everywhere
    found, metrics = jax.jit(lambda *arguments: algorithm.step(*arguments))(state, batch, draws)
    expected, expected_metrics = jax.jit(one_pass_step)(algorithm, state, batch, draws)
    for name, value in expected_metrics.items():
        assert metrics[name] == pytest.approx(float(value), rel=1e-6, abs=1e-6), name
    for part in ("actor", "critic"):
        ours, theirs, before = getattr(found, part), getattr(expected, part), getattr(state, part)
        # After one step the first moment of Adam is a tenth of the gradient.
        assert_close(
            jax.tree.map(lambda moment: 10 * moment, ours.optimiser.mu),
            jax.tree.map(lambda moment: 10 * moment, theirs.optimiser.mu),
        )
        assert_close(ours.network, theirs.network)
        moved = [np.abs(new - old).max() for new, old in zip(*map(jax.tree.leaves, (ours, before)), strict=True)]
        assert min(moved) > 0
    assert_close(found.target_critic, expected.target_critic)


def test_the_gradient_of_the_actor_loss_is_the_one_that_adam_sees():
    state, batch, draws = random_state(TINY), random_batch(), random_draws(4)

    @jax.jit
    def gradient_and_step(state, batch, draws):
        winner = TINY.route(state.actor.network, batch, draws.latent)
        gradient, _ = jax.grad(TINY.actor_loss, has_aux=True)(state.actor.network, state.critic.network, batch, winner)
        return gradient, TINY.step(state, batch, draws)[0].actor.optimiser.mu

    gradient, moment = gradient_and_step(state, batch, draws)
    assert_close(jax.tree.map(lambda leaf: 10 * leaf, moment), gradient)


def test_candidates_that_did_not_win_get_no_gradient_at_all():
    state, batch, draws = random_state(TINY), random_batch(), random_draws(4)
    actor, critic = state.actor.network, state.critic.network

    @jax.jit
    @jax.grad
    def routed_gradient(latent):
        return TINY.actor_loss(actor, critic, batch, TINY.route(actor, batch, latent))[0]

    @jax.jit
    @jax.grad
    def plain_gradient(latent):
        altered = Draws(latent, draws.next_latent)
        return one_pass_loss((actor, critic), TINY, state.target_critic, batch, altered)[1]["actor_loss"]

    gradient = np.asarray(routed_gradient(draws.latent))  # [batch, K, action]
    candidates = np.clip(actor.candidates(batch.observation, draws.latent), -1, 1)
    winner = np.square(candidates - np.asarray(batch.action)[:, None]).sum(-1).argmin(-1)
    won = np.arange(4) == winner[:, None]
    assert (gradient[~won] == 0).all()
    inside = (np.abs(candidates[won]) < 1).all(-1)
    assert inside.sum() > 10
    assert (np.abs(gradient[won][inside]).max(-1) > 0).all()
    assert_close(gradient, plain_gradient(draws.latent))


def test_candidates_are_clipped_before_they_are_compared():
    one = dataclasses.replace(random_batch(1), action=jnp.asarray([[0.9, 0.9]]))
    latent = jnp.asarray([[[3.0, 3.0], [0.5, 0.5]]])  # the first is nearest once it is clipped, else the second
    np.testing.assert_array_equal(TINY.route(Echo(), one, latent), [[3.0, 3.0]])


def test_the_action_of_the_target_is_clipped():
    state, batch, draws = random_state(TINY), random_batch(), random_draws(4)
    actor = with_outputs_scaled(state.actor.network, 3.0)
    next_action = np.asarray(actor(batch.next_observation, draws.next_latent))
    assert (np.abs(next_action) > 1).any()
    next_q = np.asarray(state.target_critic(batch.next_observation, np.clip(next_action, -1, 1))).mean(0)
    expected = np.asarray(batch.reward) + 0.99 * np.asarray(batch.continues) * next_q
    found = TINY.bellman_target(state.target_critic, actor, batch, draws.next_latent)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_diagnostics_are_those_of_clipped_candidates():
    state, batch, key = random_state(TINY), random_batch(), jax.random.key(3)
    candidates = state.actor.network.candidates(batch.observation, TINY.draw(batch, key).latent)
    assert np.abs(candidates).max() > 1
    expected = candidate_diagnostics(jnp.clip(candidates, -1, 1), batch.action)
    assert TINY.diagnose(state, batch, key) == expected


@pytest.fixture(scope="module")
def acting():
    """An actor that often leaves the box, observations, keys, and what `act` does with them for 1 and for 8 draws."""
    state = random_state(TINY)
    policy = Policy(with_outputs_scaled(state.actor.network, 3.0), state.critic.network)
    observations = random_batch().observation
    keys = jax.random.split(jax.random.key(2), len(observations))

    @functools.partial(jax.jit, static_argnames="best_of")
    def act(keys, best_of):
        return jax.vmap(lambda observation, key: TINY.act(policy, observation, key, best_of))(observations, keys)

    return policy, observations, keys, act


def test_actions_lie_in_the_box_and_reach_its_edge(acting):
    _, observations, keys, act = acting
    for best_of in (1, 8):
        actions = act(keys, best_of)
        assert actions.shape == (len(observations), ACTION_SIZE)
        assert np.abs(actions).max() == 1


def test_best_of_takes_the_action_with_the_highest_mean_q(acting):
    policy, observations, keys, act = acting
    latent = jax.jit(jax.vmap(lambda key: draw_latents(key, (8, ACTION_SIZE))))(keys)
    repeated = jnp.repeat(observations[:, None], 8, 1)
    actions = np.clip(policy.actor(repeated, latent), -1, 1)  # [batch, 8, action]
    values = np.asarray(policy.critic(repeated, actions)).mean(0)
    chosen = values.argmax(-1)
    assert len(set(chosen)) > 3  # it is not always the same draw
    np.testing.assert_allclose(act(keys, 8), actions[np.arange(len(chosen)), chosen], rtol=0, atol=1e-5)


def test_the_same_key_gives_the_same_action_and_another_key_another(acting):
    _, _, keys, act = acting
    for best_of in (1, 8):
        np.testing.assert_array_equal(act(keys, best_of), act(keys, best_of))
        different = np.asarray(act(keys, best_of) != act(keys[::-1], best_of)).any(-1)
        assert different.mean() > 0.5
