import copy

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import OBSERVATION_SIZE, SPEC, TINY, random_state, random_tree, tiny_config, tiny_task

from drol.checkpoints import ARRAYS, MANIFEST, read_metadata, save_tree
from drol.data.actions import ActionBox
from drol.errors import InputError
from drol.policy import Policy, Standardisation, save_policies
from drol.training.trainer import train

pytestmark = pytest.mark.usefixtures("quick_compile")

SEEDS = (4, 0, 9)


@pytest.fixture(scope="module")
def stacked():
    """The networks of three seeds, and a standardisation that matters."""
    networks = [random_state(TINY, seed=10 * number).policy for number in range(3)]
    standardisation = Standardisation(jnp.asarray([1.0, -2.0, 0.5]), jnp.asarray([2.0, 0.5, 1.0]))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks), standardisation


@pytest.fixture
def folder(tmp_path, stacked):
    folder = tmp_path / "000000012"
    save_policies(folder, TINY, stacked, SPEC, SEEDS, task="toy", step=12)
    return folder


@pytest.mark.parametrize(("seed", "index"), [(4, 0), (0, 1), (9, 2), (None, 0)])
def test_each_seed_comes_back_as_it_was_saved(folder, stacked, seed, index):
    found = Policy.load(folder, seed)
    networks = jax.tree.map(lambda leaf: leaf[index], stacked[0])
    jax.tree.map(np.testing.assert_array_equal, found.networks, networks)
    jax.tree.map(np.testing.assert_array_equal, found.standardisation, stacked[1])
    assert jax.tree.structure(found.networks) == jax.tree.structure(networks)
    assert found.algorithm.to_dict() == TINY.to_dict()


def test_what_the_policies_are_is_saved_with_them(folder):
    metadata = read_metadata(folder)
    assert metadata["algorithm"] == "drol"
    assert metadata["seeds"] == [4, 0, 9]
    assert metadata["observation_shape"] == [3]
    assert metadata["action_size"] == 2
    assert (metadata["task"], metadata["step"]) == ("toy", 12)


def test_a_policy_standardises_what_it_sees(folder, stacked):
    policy = Policy.load(folder, 0)
    observation, key = np.asarray([0.3, 0.2, -0.1]), jax.random.key(0)
    plain = Policy(TINY, policy.networks, Standardisation.identity(SPEC))
    standardised = (observation - np.asarray([1.0, -2.0, 0.5])) / np.asarray([2.0, 0.5, 1.0])
    found = policy.act(observation, key)
    np.testing.assert_allclose(found, plain.act(standardised, key), rtol=0, atol=1e-6)
    assert not np.allclose(found, plain.act(observation, key), atol=1e-3)


def test_a_batch_of_observations_and_keys_is_acted_on_row_by_row(folder):
    policy = Policy.load(folder)
    observations = np.random.default_rng(0).normal(size=(5, OBSERVATION_SIZE))
    keys = jax.random.split(jax.random.key(1), 5)
    together = policy.act(observations, keys)
    assert together.shape == (5, 2)
    for row in range(5):
        np.testing.assert_allclose(together[row], policy.act(observations[row], keys[row]), rtol=0, atol=1e-6)


def test_a_seed_that_is_not_there_is_answered_with_those_that_are(folder):
    with pytest.raises(InputError) as caught:
        Policy.load(folder, 5)
    assert str(caught.value) == f"seed 5 is not in {folder}; it has 4 0 9"


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_damaged_policy_is_refused_in_one_line(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        Policy.load(folder, 0)
    assert str(caught.value).startswith(f"the policy in {folder} cannot be used: {name} ")
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_absent_or_no_policy_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"the policy in .* cannot be used: manifest\.json cannot be read"):
        Policy.load(tmp_path / "absent")
    save_tree(tmp_path / "checkpoint", random_tree({"a": jax.ShapeDtypeStruct((2,), jnp.float32)}, 0), {"step": 3})
    with pytest.raises(InputError, match="checkpoint"):
        Policy.load(tmp_path / "checkpoint")


def test_standardisation_shifts_and_scales_and_leaves_constant_dimensions_finite():
    observation = jnp.asarray([[1.0, 7.0], [3.0, 7.0], [5.0, 7.0], [7.0, 7.0]])
    found = Standardisation.of(observation)
    np.testing.assert_allclose(found.mean, [4, 7])
    np.testing.assert_allclose(found.deviation, [np.sqrt(5), 1], rtol=1e-6)
    scaled = np.asarray(found(observation))
    np.testing.assert_allclose(scaled.mean(0), [0, 0], atol=1e-6)
    np.testing.assert_allclose(scaled.std(0), [1, 0], atol=1e-6)
    np.testing.assert_allclose(Standardisation.of(observation, 3.0)(observation).std(0), [3, 0], atol=1e-6)


def test_a_policy_knows_the_box_that_its_data_was_scaled_from(tmp_path):
    task = tiny_task(None, action_box=ActionBox((0.0, -10.0), (4.0, 10.0)))
    train(tiny_config(seeds=(0,), steps=1), tmp_path / "run", task, quiet=True)
    policy = Policy.load(tmp_path / "run" / "policies" / "000000001")
    np.testing.assert_allclose(policy.in_units_of_the_data(np.asarray([-1.0, 0.5])), [0, 5])
    plain = Policy(policy.algorithm, policy.networks, policy.standardisation)
    np.testing.assert_allclose(plain.in_units_of_the_data(np.asarray([-1.0, 0.5])), [-1, 0.5])


@pytest.mark.parametrize("best_of", [1, 3])
def test_acting_alone_in_a_program_and_in_a_batch_give_the_same_action(folder, best_of):
    policy = Policy.load(folder, 9)
    observation, key = np.asarray([0.3, 0.2, -0.1]), jax.random.key(5)
    alone = policy.act(observation, key, best_of)
    assert alone.shape == (2,)
    inside = jax.jit(lambda policy, observation: policy.act(observation, key, best_of))(policy, observation)
    np.testing.assert_allclose(alone, inside, rtol=0, atol=1e-6)
    np.testing.assert_allclose(alone, policy.act([0.3, 0.2, -0.1], key, best_of), rtol=0, atol=0)
    together = policy.act(observation[None], key[None], best_of)
    np.testing.assert_allclose(alone, together[0], rtol=0, atol=1e-6)
    assert policy.act_alone is policy.act_alone  # compiled once


def test_each_policy_acts_with_its_own_weights_after_others_have_acted(folder):
    observation, key = np.asarray([0.3, 0.2, -0.1]), jax.random.key(5)
    policies = {seed: Policy.load(folder, seed) for seed in SEEDS}
    alone = {seed: policy.act(observation, key) for seed, policy in policies.items()}
    for seed, policy in policies.items():
        np.testing.assert_allclose(alone[seed], policy.act(observation[None], key[None])[0], rtol=0, atol=1e-6)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, policies[4])
    assert not np.allclose(doubled.act(observation, key), alone[4], atol=1e-3)


def test_a_policy_that_acted_can_be_copied_and_mapped_over(folder):
    observation, key = np.asarray([0.3, 0.2, -0.1]), jax.random.key(5)
    policy = Policy.load(folder, 0)
    action = policy.act(observation, key)
    copied = copy.deepcopy(policy)
    np.testing.assert_array_equal(copied.act(observation, key), action)
    assert jax.tree.structure(copied) == jax.tree.structure(policy)
    keys = jax.random.split(key, 4)
    mapped = jax.vmap(lambda each: policy.act(observation, each))(keys)
    for row in range(4):
        np.testing.assert_allclose(mapped[row], policy.act(observation, keys[row]), rtol=0, atol=1e-6)


def test_acting_is_called_as_a_method(folder):
    policy = Policy.load(folder, 0)
    assert not isinstance(policy.act, eqx.Module)  # slow to make
    assert Policy.act.__doc__.startswith("One action in [-1, 1]")
    observation, key = np.asarray([0.3, 0.2, -0.1]), jax.random.key(5)
    np.testing.assert_array_equal(Policy.act(policy, observation, key), policy.act(observation, key=key, best_of=1))
    np.testing.assert_allclose(jax.jit(policy.act)(observation, key), policy.act(observation, key), rtol=0, atol=1e-6)
