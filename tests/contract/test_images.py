"""What holds for every registered algorithm when observations are images."""

import math

import jax
import numpy as np
import pytest
from toys import random_rows

from drol.algorithms import ALGORITHMS
from drol.data.dataset import Dataset
from drol.transition import Spec

BATCH, SPEC = 8, Spec((8, 8, 3), 2)
SMALL = {"hidden_sizes": (16,), "batch_size": BATCH}
CONVOLUTIONS = 9  # of one encoder


@pytest.fixture(scope="module")
def dataset():
    rows = random_rows([10, 10])
    pictures = np.random.default_rng(0).integers(0, 256, (len(rows["last"]), 8, 8, 1), np.uint8)
    return Dataset.from_rows(**(rows | {"observation": pictures}), frame_stack=3, crop_probability=0.5)


@pytest.fixture(scope="module", params=ALGORITHMS)
def algorithm(request):
    return ALGORITHMS[request.param](**SMALL)


def abstract_state(algorithm):
    return jax.eval_shape(lambda key: algorithm.init(key, SPEC), jax.random.key(0))


def abstract_batch(dataset):
    return jax.eval_shape(lambda key: dataset.sample(key, BATCH), jax.random.key(0))


def convolutions(jaxpr, in_loop=False):
    """Every convolution of a program: the shape of what it is applied to, and whether it is inside a loop."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "conv_general_dilated":
            yield equation.invars[0].aval.shape, in_loop
        inside = in_loop or equation.primitive.name in ("scan", "while")
        for value in jax.tree.leaves(list(equation.params.values())):
            inner = getattr(value, "jaxpr", value)  # a closed jaxpr or an open one
            if hasattr(inner, "eqns"):
                yield from convolutions(inner, inside)


def convolutions_of(function, *arguments):
    return list(convolutions(jax.make_jaxpr(function)(*arguments).jaxpr))


def test_a_few_updates_move_every_encoder_and_the_policy_acts_on_an_image(algorithm, dataset):
    assert dataset.spec == SPEC
    state = jax.jit(lambda key: algorithm.init(key, SPEC))(jax.random.key(0))
    before = state
    update = jax.jit(lambda state, key: algorithm.update(state, dataset.sample(key, BATCH), key))
    for step in range(4):  # a delayed target moves at the fourth
        state, metrics = update(state, jax.random.key(step))
        assert all(np.isfinite(value).all() for value in metrics.values())
    moved = jax.tree.map(lambda old, new: bool((old != new).any()), before, state)
    kernels = {
        jax.tree_util.keystr(path): flag
        for path, flag in jax.tree_util.tree_leaves_with_path(moved)
        if "stacks" in jax.tree_util.keystr(path) and "kernel" in jax.tree_util.keystr(path)
    }
    assert len(kernels) >= CONVOLUTIONS
    assert all(kernels.values()), kernels
    observation = dataset.take(np.arange(1)).observation[0]
    action = np.asarray(jax.jit(algorithm.act)(state.policy, observation, jax.random.key(1)))
    assert action.shape == (2,)
    assert np.abs(action).max() <= 1


def test_no_state_is_encoded_more_than_once_by_a_network_in_one_loss(algorithm, dataset):
    """Not for each candidate, each Euler step or each member of an ensemble."""
    state, batch, key = abstract_state(algorithm), abstract_batch(dataset), jax.random.key(0)
    found = convolutions_of(algorithm.update, state, batch, key)
    assert len(found) >= CONVOLUTIONS
    assert {shape[0] for shape, _ in found} == {BATCH}
    assert not any(in_loop for _, in_loop in found)
    observation = jax.ShapeDtypeStruct(SPEC.observation_shape, np.uint8)
    count = 5 if algorithm.draws_actions else 1
    acting = convolutions_of(
        lambda *arguments: algorithm.act(*arguments, best_of=count), state.policy, observation, key
    )
    assert {shape[0] for shape, _ in acting} == {1}
    assert not any(in_loop for _, in_loop in acting)
    assert len(acting) <= 3 * CONVOLUTIONS  # a flow, its refinement and the critic that chooses


def test_the_convolutions_of_drol_do_not_grow_with_the_number_of_candidates(dataset):
    def work(count):
        algorithm = ALGORITHMS["drol"](**SMALL, num_candidates=count)
        found = convolutions_of(algorithm.update, abstract_state(algorithm), abstract_batch(dataset), jax.random.key(0))
        return len(found), sum(math.prod(shape) for shape, _ in found)

    assert work(1) == work(16) == work(64)
    # Forward: the candidates, the next action, its target value, the winner, its value, the value of the data.
    # Backward: actor and critic; the first layer needs no gradient of its input.
    assert work(16)[0] == 6 * CONVOLUTIONS + 2 * (2 * CONVOLUTIONS - 1)
