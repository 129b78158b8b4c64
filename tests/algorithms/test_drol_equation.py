import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import ACTION_SIZE, TINY, Echo, assert_close, random_batch, random_draws, random_state, with_outputs_scaled

from drol.algorithms.drol_equation import DROLEquation
from drol.algorithms.parts import ADAM
from drol.algorithms.routing import candidate_diagnostics

EQUATION = DROLEquation(num_candidates=4, hidden_sizes=(16, 16), batch_size=32)


def test_candidates_are_compared_before_clipping():
    one = dataclasses.replace(random_batch(1), action=jnp.asarray([[0.9, 0.9]]))
    latent = jnp.asarray([[[3.0, 3.0], [0.5, 0.5]]])  # the first would be nearest once it is clipped
    np.testing.assert_array_equal(EQUATION.route(Echo(), one, latent), [[0.5, 0.5]])


@pytest.mark.parametrize("aggregation", ["mean", "min"])
def test_the_loss_is_the_squared_norm_minus_alpha_times_q(aggregation):
    algorithm = dataclasses.replace(EQUATION, alpha=0.3, actor_aggregation=aggregation)
    state, batch, draws = random_state(algorithm), random_batch(), random_draws(4)
    actor, critic = with_outputs_scaled(state.actor.network, 3.0), state.critic.network
    winner = draws.latent[:, 0]
    action = np.asarray(actor(batch.observation, winner))
    assert (np.abs(action) > 1).any()  # otherwise this would not show that nothing is clipped
    q = np.asarray(critic(batch.observation, action))
    q = {"mean": q.mean(0), "min": q.min(0)}[aggregation]
    squared_norm = np.square(action - np.asarray(batch.action)).sum(-1)
    loss, metrics = algorithm.actor_loss(actor, critic, batch, winner)
    assert loss == pytest.approx(np.mean(squared_norm - 0.3 * q), rel=1e-6, abs=1e-6)
    assert metrics["routed_squared_norm"] == pytest.approx(squared_norm.mean(), rel=1e-6)


def test_the_action_of_the_target_is_not_clipped():
    state, batch, draws = random_state(EQUATION), random_batch(), random_draws(4)
    actor = with_outputs_scaled(state.actor.network, 3.0)
    next_action = np.asarray(actor(batch.next_observation, draws.next_latent))
    assert (np.abs(next_action) > 1).any()
    next_q = np.asarray(state.target_critic(batch.next_observation, next_action)).mean(0)
    expected = np.asarray(batch.reward) + 0.99 * np.asarray(batch.continues) * next_q
    found = EQUATION.bellman_target(state.target_critic, actor, batch, draws.next_latent)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_step_follows_algorithm_1_the_actor_first_and_then_the_critic_with_its_new_action():
    algorithm = dataclasses.replace(EQUATION, learning_rate=0.05)  # so that the two orders differ
    state, batch, draws = random_state(algorithm), random_batch(), random_draws(4)

    def stepped(part, gradient):
        direction, _ = ADAM.update(gradient, part.optimiser)
        return jax.tree.map(lambda old, step: old - algorithm.learning_rate * step, part.network, direction)

    def actor_loss(actor):
        observation = jnp.repeat(batch.observation[:, None], 4, 1)
        distance = jnp.square(actor(observation, draws.latent) - batch.action[:, None]).sum(-1)  # [batch, K]
        winner = jnp.take_along_axis(draws.latent, distance.argmin(-1)[:, None, None], 1)[:, 0]
        q = state.critic.network(batch.observation, actor(batch.observation, winner)).min(0)
        return (distance.min(-1) - q).mean()

    def critic_loss(critic, actor):
        next_q = state.target_critic(batch.next_observation, actor(batch.next_observation, draws.next_latent)).mean(0)
        target = batch.reward + algorithm.discount * batch.continues * next_q
        return jnp.square(critic(batch.observation, batch.action) - target).mean()

    found, _ = jax.jit(lambda *arguments: algorithm.step(*arguments))(state, batch, draws)
    actor = stepped(state.actor, jax.jit(jax.grad(actor_loss))(state.actor.network))
    assert_close(found.actor.network, actor)
    gradient = jax.jit(jax.grad(critic_loss))
    assert_close(found.critic.network, stepped(state.critic, gradient(state.critic.network, actor)))
    by_the_old_actor = stepped(state.critic, gradient(state.critic.network, state.actor.network))
    gaps = jax.tree.map(lambda one, other: np.abs(one - other).max(), found.critic.network, by_the_old_actor)
    assert max(jax.tree.leaves(gaps)) > 1e-3  # the order of the released code gives another critic
    moved = jax.tree.map(lambda new, old: 0.005 * new + 0.995 * old, state.critic.network, state.target_critic)
    assert_close(found.target_critic, moved)


def test_inside_the_box_the_gradient_of_drol_is_that_of_the_equation_times_bc_weight_over_d_a():
    released = dataclasses.replace(TINY, bc_weight=0.4, q_weight=1.7)
    state, batch, draws = random_state(released), random_batch(), random_draws(4)
    actor, critic = with_outputs_scaled(state.actor.network, 0.3), state.critic.network
    winner = released.route(actor, batch, draws.latent)
    action = actor(batch.observation, winner)
    assert np.abs(action).max() < 1
    scale = 1 / np.abs(critic(batch.observation, action).min(0)).mean()
    equation = dataclasses.replace(EQUATION, alpha=ACTION_SIZE * 1.7 * float(scale) / 0.4)
    np.testing.assert_array_equal(equation.route(actor, batch, draws.latent), winner)

    def gradient(algorithm):
        return jax.jit(jax.grad(lambda actor: algorithm.actor_loss(actor, critic, batch, winner)[0]))(actor)

    expected = gradient(released)
    assert_close(jax.tree.map(lambda leaf: 0.4 / ACTION_SIZE * leaf, gradient(equation)), expected)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected)) > 0.05


def test_actions_and_diagnostics_are_of_clipped_candidates():
    state, batch, key = random_state(EQUATION), random_batch(), jax.random.key(3)
    candidates = state.actor.network.candidates(batch.observation, EQUATION.draw(batch, key).latent)
    assert np.abs(candidates).max() > 1
    expected = candidate_diagnostics(jnp.clip(candidates, -1, 1), batch.action)
    assert EQUATION.diagnose(state, batch, key) == expected
    policy = dataclasses.replace(state.policy, actor=with_outputs_scaled(state.actor.network, 30.0))
    assert np.abs(EQUATION.act(policy, batch.observation[0], key)).max() == 1
