import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, random_batch, random_tree

from drol.networks.critics import QEnsemble


@pytest.fixture(scope="module")
def critic():
    return random_tree(jax.eval_shape(lambda key: QEnsemble(key, SPEC, (16, 16), size=3), jax.random.key(0)), 0)


def test_each_value_is_that_of_its_member_alone(critic):
    batch = random_batch(8)
    found = critic(batch.observation, batch.action)
    assert found.shape == (3, 8)
    joined = jnp.concatenate([batch.observation, batch.action], -1)
    for index in range(3):
        member = jax.tree.map(lambda leaf, i=index: leaf[i], critic.members)
        np.testing.assert_allclose(found[index], member(joined)[:, 0], rtol=0, atol=1e-6)
    assert critic(batch.observation[0], batch.action[0]).shape == (3,)


def test_changing_one_member_changes_its_value_only(critic):
    batch = random_batch(8)
    before = critic(batch.observation, batch.action)
    kernel = critic.members.layers[0].kernel
    changed = eqx.tree_at(lambda tree: tree.members.layers[0].kernel, critic, kernel.at[1].add(1.0))
    after = changed(batch.observation, batch.action)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[2], before[2])
    assert (np.abs(after[1] - before[1]) > 1e-3).all()


def test_members_start_different_and_normalised():
    critic = jax.jit(lambda key: QEnsemble(key, SPEC, (16, 16)))(jax.random.key(0))
    for layer in critic.members.layers:
        assert len(layer.kernel) == 2  # two critics unless more are asked for
        assert (np.asarray(layer.kernel[0]) != np.asarray(layer.kernel[1])).mean() > 0.99
    assert len(critic.members.norms) == 2
