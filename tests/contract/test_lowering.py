"""Every compiled program of every algorithm is lowered for CUDA and TPU, on a machine that has neither."""

import functools

import jax
import jax.numpy as jnp
import pytest
from toys import ACTION_SIZE, OBSERVATION_SIZE, SPEC, random_batch, random_rows, tiny_task

from drol.algorithms import ALGORITHMS
from drol.compiling import compiler_options
from drol.data.dataset import Dataset
from drol.data.replay import Experience
from drol.data.standardisation import Standardisation
from drol.evaluation import fitted_q
from drol.evaluation.episodes import draw_rows
from drol.evaluation.held_out import split
from drol.evaluation.support import HeldOut, measure
from drol.policy import Policy
from drol.training.compiled import diagnose_seeds, init_seeds, seed_keys, train_batches, train_chunk, zero_totals
from drol.training.divergence import all_finite
from drol.training.online import Arrival, absorb, explore_seeds, online_update

PLATFORMS = ("cuda", "tpu")
SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}
NUMBER = jax.ShapeDtypeStruct((), jnp.int32)
SEEDS = 2  # one program, by vmap


def lower(function, *arguments, **static) -> None:
    """Lower a program for each platform; raise an error if that fails. Arguments may be shapes."""
    inner = getattr(function, "__wrapped__", function)
    traced = jax.jit(functools.partial(inner, **static)).trace(*arguments)
    for platform in PLATFORMS:
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert "module @" in text, platform


def shapes_of(function, *arguments):
    return jax.eval_shape(function, *arguments)


@pytest.fixture(scope="module")
def dataset():
    return Dataset.from_rows(**random_rows([50, 100, 50]))


@pytest.fixture(scope="module", params=ALGORITHMS)
def algorithm(request):
    return ALGORITHMS[request.param](**SMALL)


def states_and_totals(algorithm, dataset, keys):
    states = shapes_of(lambda keys: init_seeds.__wrapped__(algorithm, keys, SPEC), keys)
    return states, shapes_of(lambda states: zero_totals.__wrapped__(algorithm, states, dataset, keys), states)


def test_training(algorithm, dataset):
    keys = seed_keys((0,))
    states, totals = states_and_totals(algorithm, dataset, keys)
    lower(init_seeds, algorithm, keys, spec=SPEC)
    lower(train_chunk, algorithm, states, totals, dataset, keys, NUMBER, NUMBER)
    lower(diagnose_seeds, algorithm, states, dataset, keys, NUMBER, NUMBER)


def test_seeds_as_one_program(algorithm, dataset):
    keys = seed_keys(tuple(range(SEEDS)))
    states, totals = states_and_totals(algorithm, dataset, keys)
    lower(train_chunk, algorithm, states, totals, dataset, keys, NUMBER, NUMBER)
    batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((SEEDS, 3, *leaf.shape), leaf.dtype), random_batch(16))
    lower(train_batches, algorithm, states, totals, batch, keys, NUMBER, NUMBER, NUMBER)
    experiences = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((SEEDS, *leaf.shape), leaf.dtype), Experience.empty(20, dataset)
    )
    lower(explore_seeds, algorithm, states, experiences, keys, NUMBER)
    lower(online_update, algorithm, states, totals, dataset, experiences, keys, NUMBER, balanced=True)


def policy_of(algorithm):
    networks = shapes_of(lambda key: algorithm.init(key, SPEC).policy, jax.random.key(0))
    return Policy(algorithm, networks, Standardisation.identity(SPEC))


def test_acting_and_offline_evaluation(algorithm, dataset):
    policy, key = policy_of(algorithm), jax.random.key(0)
    rows = jax.ShapeDtypeStruct((16, OBSERVATION_SIZE), jnp.float32)
    numbers = jax.ShapeDtypeStruct((16,), jnp.uint32)
    lower(draw_rows, policy, rows, numbers, numbers, best_of=None)
    actions = jax.ShapeDtypeStruct((16, ACTION_SIZE), jnp.float32)
    neighbours = jax.ShapeDtypeStruct((16, 4, ACTION_SIZE), jnp.float32)
    lower(measure, policy, HeldOut(rows, actions, neighbours), key, best_of=None)
    lower(fitted_q.policy_actions, policy, dataset, jax.ShapeDtypeStruct((300,), jnp.int32), key, best_of=None)


def test_fitted_q_and_what_all_algorithms_share(monkeypatch, dataset):
    monkeypatch.setattr(fitted_q, "fit_returns", lambda data, key, updates: data.start)  # it would compile
    data = fitted_q.prepare(split(tiny_task(None))[1], 0.9)
    next_action = jax.ShapeDtypeStruct((len(data.index), ACTION_SIZE), jnp.float32)
    monkeypatch.undo()
    lower(fitted_q.fit_returns, data, jax.random.key(0), NUMBER)
    lower(fitted_q.fit_bellman, data, next_action, jax.random.key(0), NUMBER)
    lower(all_finite, {"totals": jnp.zeros(SEEDS)})
    experiences = jax.tree.map(lambda leaf: jnp.stack([leaf] * SEEDS), Experience.empty(20, dataset))
    size, action = jnp.zeros((SEEDS, OBSERVATION_SIZE)), jnp.zeros((SEEDS, ACTION_SIZE))
    yes, number = jnp.ones(SEEDS, bool), jnp.zeros(SEEDS)
    lower(absorb, experiences, Arrival(action, number, number, size, yes, yes, size))


def test_what_cannot_be_lowered_fails():
    with pytest.raises(Exception, match=r"cuda|platform"):
        lower(lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin), jnp.zeros(2))


@pytest.mark.parametrize("platform", ["gpu", "tpu", "cpu"])
def test_options_of_the_compiler_are_those_of_the_platform(platform, monkeypatch):
    """Options of one platform are not known to another, which would refuse them or, worse, understand them."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    compiler_options.cache_clear()
    try:
        names = compiler_options()
    finally:
        compiler_options.cache_clear()
    assert all(name.startswith(f"xla_{platform}") for name in names)
    assert bool(names) == (platform == "cpu")
