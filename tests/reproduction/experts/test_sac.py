import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drol_reproduction.experts.sac import SAC, Batch, draw, explore, update, values

SMALL = SAC(hidden_sizes=(16, 16), batch_size=8)


@pytest.fixture(scope="module")
def state():
    return SMALL.init(jax.random.key(0), 3, 2)


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(0)
    draws = [generator.normal(size=shape).astype(np.float32) for shape in ((8, 3), (8, 2), 8, (8, 3))]
    return Batch(draws[0], np.tanh(draws[1]), draws[2], np.array([1, 0] * 4, np.float32), draws[3])


def test_the_density_is_that_of_a_squashed_gaussian(state):
    actor, noise = state.networks.network.actor, np.array([0.3, -1.2])
    observation = np.array([1.0, -2.0, 0.5])
    mean, log_std = np.split(np.asarray(actor(observation), np.float64), 2)
    unbounded = mean + np.exp(log_std) * noise
    gaussian = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    action, log_density = draw(actor, observation, noise)
    np.testing.assert_allclose(action, np.tanh(unbounded), rtol=1e-5)
    np.testing.assert_allclose(log_density, (gaussian - np.log(1 - np.tanh(unbounded) ** 2)).sum(), rtol=1e-4)


def test_the_loss_is_that_of_the_equations(state, batch):
    networks = jax.tree.map(lambda leaf: leaf + 0.01, state.networks.network)  # alpha is not 1
    noise, next_noise = np.random.default_rng(1).normal(size=(2, 8, 2)).astype(np.float32)
    alpha = np.exp(0.01)
    next_action, next_density = draw(networks.actor, batch.next_observation, next_noise)
    next_q = np.asarray(values(state.target_critics, batch.next_observation, next_action)).min(0)
    target = batch.reward + 0.99 * batch.not_terminal * (next_q - alpha * np.asarray(next_density))
    critic_loss = np.square(np.asarray(values(networks.critics, batch.observation, batch.action)) - target).mean()
    action, density = map(np.asarray, draw(networks.actor, batch.observation, noise))
    q = np.asarray(values(networks.critics, batch.observation, action)).min(0)
    expected = critic_loss + (alpha * density - q).mean() + alpha * (-density.mean() + 0.5 * 2)
    found, metrics = SMALL.loss(networks, state.target_critics, batch, noise, next_noise)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(metrics["critic_loss"], critic_loss, rtol=1e-4)


def test_each_network_descends_its_own_loss(state, batch):
    noise, next_noise = np.zeros((2, 8, 2), np.float32)
    networks, target = state.networks.network, state.target_critics

    def part(name):
        return jax.grad(lambda networks: SMALL.loss(networks, target, batch, noise, next_noise)[1][name])(networks)

    gradient = jax.grad(lambda networks: SMALL.loss(networks, target, batch, noise, next_noise)[0])(networks)
    for name, loss in (("critics", "critic_loss"), ("actor", "actor_loss")):
        own = jax.tree.leaves(getattr(part(loss), name))
        for one, other in zip(jax.tree.leaves(getattr(gradient, name)), own, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    entropy = -draw(networks.actor, batch.observation, noise)[1].mean()
    np.testing.assert_allclose(gradient.log_alpha, entropy + 0.5 * 2, rtol=1e-4)


def test_the_targets_follow_the_critics_from_before_the_update(state, batch):
    moved = jax.tree.map(jnp.zeros_like, state.target_critics)
    after, _ = update(SMALL, type(state)(state.networks, moved), batch, jax.random.key(0), 1)
    for new, online in zip(*map(jax.tree.leaves, (after.target_critics, state.networks.network.critics)), strict=True):
        np.testing.assert_allclose(new, 0.005 * online, atol=1e-7)


def test_a_bandit_is_learned():
    sac, key, generator = SAC((32, 32), 64, learning_rate=1e-2), jax.random.key(0), np.random.default_rng(0)
    state = sac.init(key, 1, 1)
    observation = np.zeros((64, 1), np.float32)
    for step in range(300):
        action = generator.uniform(-1, 1, (64, 1)).astype(np.float32)
        reward = -20 * np.square(action[:, 0] - 0.5)
        state, _ = update(sac, state, Batch(observation, action, reward, 0 * reward, observation), key, step)
    actor = state.networks.network.actor
    actions = [float(explore(actor, observation[0], key, step)[0]) for step in range(50)]
    assert abs(np.mean(actions) - 0.5) < 0.15
