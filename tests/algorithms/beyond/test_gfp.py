import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from toys import SPEC, random_batch

from drol.algorithms import FQL
from drol.algorithms.beyond.gfp import GFP

SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}


def made(**hyperparameters):
    algorithm = GFP(**SMALL, **hyperparameters)
    batch = random_batch(16)
    state = algorithm.init(jax.random.key(0), SPEC)
    return algorithm, state, batch, algorithm.draw(batch, jax.random.key(1))


def test_guidance_is_the_softmax_of_the_printed_equation():
    algorithm, state, batch, draws = made(temperature=0.05)
    action = jnp.clip(state.actor.network(batch.observation, draws.noise), -1, 1)
    own = np.asarray(state.target_critic(batch.observation, action).mean(0), np.float64)
    data = np.asarray(state.target_critic(batch.observation, batch.action).mean(0), np.float64)
    scale = 1 / np.abs(own).mean() / 0.05  # the target is the critic before the first update
    expected = np.exp(scale * data - logsumexp(np.stack([scale * data, scale * own]), axis=0))
    found = algorithm.guidance(state.actor.network, state.critic.network, state.target_critic, batch, draws.noise)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found.std() > 0.05


def test_without_guidance_it_is_fql_whose_flow_learns_at_half_the_weight():
    algorithm, state, batch, draws = made(temperature=1e9)
    same = FQL(**SMALL, normalise_q=True)
    ours, our_metrics = algorithm.step(state, batch, draws)
    theirs, metrics = same.step(state, batch, draws)
    np.testing.assert_allclose(our_metrics["flow_loss"], metrics["flow_loss"] / 2, rtol=1e-5)
    np.testing.assert_allclose(our_metrics["guidance"], 0.5, rtol=1e-6)
    for name in ("actor_loss", "critic_loss"):
        np.testing.assert_allclose(our_metrics[name], metrics[name], rtol=1e-5)
    for left, right in zip(jax.tree.leaves(ours.actor), jax.tree.leaves(theirs.actor), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)
