import jax
import jax.numpy as jnp
import numpy as np
from toys import SPEC, random_batch

from drol.algorithms import FQL, IFQL, ifql
from drol.algorithms.beyond.bfn import BFN

SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}


def made(**hyperparameters):
    """Return an algorithm, a state whose target critic differs from its critic, a batch and the draws of an update."""
    algorithm = BFN(**SMALL, **hyperparameters)
    batch = random_batch(16)
    state = algorithm.init(jax.random.key(0), SPEC)
    other = algorithm.init(jax.random.key(7), SPEC).critic.network
    state = type(state)(state.flow, state.critic, other)
    return algorithm, state, batch, algorithm.draw(batch, jax.random.key(1))


def flow_by_hand(field, observation, noise, steps):
    x = noise
    for step in range(steps):
        x = x + np.asarray(field(jnp.asarray(observation), jnp.asarray(x), step / steps)) / steps
    return np.clip(x, -1, 1)


def test_the_online_critic_chooses_the_next_action_and_the_target_critic_values_it():
    algorithm, state, batch, draws = made(num_samples=3, flow_steps=2, discount=0.9)
    samples = np.stack(
        [
            flow_by_hand(state.flow.network, batch.next_observation, np.asarray(draws.next_noise[:, number]), 2)
            for number in range(3)
        ]
    )  # [N, batch, action]
    online = np.stack([state.critic.network(batch.next_observation, each).mean(0) for each in samples])  # [N, batch]
    best = online.argmax(0)
    assert set(best) == {0, 1, 2}
    chosen = samples[best, np.arange(16)]
    value = np.asarray(state.target_critic(batch.next_observation, jnp.asarray(chosen))).mean(0)
    expected = batch.reward + 0.9 * batch.continues * value
    np.testing.assert_allclose(algorithm.bellman_target(state, batch, draws.next_noise), expected, rtol=1e-4, atol=1e-5)
    _, metrics = algorithm.step(state, batch, draws)
    error = np.asarray(state.critic.network(batch.observation, batch.action)) - np.asarray(expected)
    np.testing.assert_allclose(metrics["critic_loss"], np.square(error).mean(), rtol=1e-4)


def test_the_flow_learns_as_that_of_fql_and_never_sees_q():
    algorithm, state, batch, draws = made()
    after, metrics = algorithm.step(state, batch, draws)
    fql = FQL(**SMALL)
    start = fql.init(jax.random.key(3), SPEC)
    start = type(start)(state.flow, start.actor, start.critic, start.target_critic)
    fql_draws = fql.draw(batch, jax.random.key(2))
    fql_draws = type(fql_draws)(draws.flow_noise, draws.flow_time, fql_draws.noise, fql_draws.next_noise)
    theirs, their_metrics = fql.step(start, batch, fql_draws)
    np.testing.assert_allclose(metrics["flow_loss"], their_metrics["flow_loss"], rtol=1e-6)
    for left, right in zip(jax.tree.leaves(after.flow), jax.tree.leaves(theirs.flow), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)


def test_it_acts_with_the_best_of_as_many_samples_as_the_target_has():
    algorithm, state, batch, _ = made(num_samples=5)
    observation, key = batch.observation[0], jax.random.key(4)
    samples = jnp.stack(
        [
            IFQL(**SMALL).act(ifql.Policy(state.flow.network, state.critic.network), observation, key, best_of=1),
            algorithm.act(state.policy, observation, key, best_of=1),
        ]
    )
    np.testing.assert_allclose(samples[0], samples[1], rtol=1e-6)  # one sample is one sample of IFQL's flow
    assert algorithm.default_best_of == 5
    np.testing.assert_array_equal(
        algorithm.act(state.policy, observation, key), algorithm.act(state.policy, observation, key, best_of=5)
    )
    noise = jax.random.normal(key, (5, SPEC.action_size))
    drawn = flow_by_hand(state.flow.network, np.tile(observation, (5, 1)), np.asarray(noise), algorithm.flow_steps)
    q = state.critic.network(jnp.tile(observation, (5, 1)), jnp.asarray(drawn)).mean(0)
    np.testing.assert_allclose(algorithm.act(state.policy, observation, key), drawn[q.argmax()], rtol=1e-4, atol=1e-5)
