import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import ACTION_SIZE, OBSERVATION_SIZE, SPEC, random_tree

from drol.networks.actors import LatentActor


@pytest.fixture(scope="module")
def actor():
    return random_tree(jax.eval_shape(lambda key: LatentActor(key, SPEC, (16, 16)), jax.random.key(0)), 0)


@pytest.mark.parametrize(("rows", "count"), [((), 1), ((), 5), ((6,), 1), ((6,), 16), ((2, 3), 4)])
def test_candidates_equal_the_actor_on_repeated_states(actor, rows, count):
    generator = np.random.default_rng(0)
    observation = jnp.asarray(generator.normal(size=(*rows, OBSERVATION_SIZE)), jnp.float32)
    latent = jnp.asarray(generator.normal(size=(*rows, count, ACTION_SIZE)), jnp.float32)
    repeated = np.repeat(np.asarray(observation)[..., None, :], count, -2)
    found = actor.candidates(observation, latent)
    assert found.shape == (*rows, count, ACTION_SIZE)
    np.testing.assert_allclose(found, actor(repeated, latent), rtol=0, atol=1e-6)


def test_the_state_comes_before_the_latent(actor):
    generator = np.random.default_rng(0)
    observation, latent = generator.normal(size=(4, OBSERVATION_SIZE)), generator.normal(size=(4, ACTION_SIZE))
    joined = jnp.asarray(np.concatenate([observation, latent], -1), jnp.float32)
    found = actor(joined[:, :OBSERVATION_SIZE], joined[:, OBSERVATION_SIZE:])
    np.testing.assert_array_equal(found, actor.network(joined))
    assert actor.action_size == ACTION_SIZE
    assert actor.network.norms == ()
