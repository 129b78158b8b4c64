import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drol.algorithms.parts import clip
from drol.data.random_dataset import random_dataset
from drol.networks.actors import LatentActor
from drol.transition import Spec
from drol_reproduction.bench import timers


def test_the_random_dataset_is_as_large_as_asked():
    dataset = random_dataset(rows=51, observation_size=3, action_size=2)
    assert (dataset.size, dataset.spec.observation_shape, dataset.spec.action_size) == (50, (3,), 2)
    batch = dataset.take(jnp.arange(50))
    assert float(jnp.abs(batch.action).max()) < 1
    assert batch.observation.dtype == jnp.float32


def test_everything_is_timed_once_in_a_round_after_a_round_that_does_not_count():
    order, said = [], []

    def timer(name):
        def run():
            order.append(name)
            return float(len(order))

        return run

    found = timers.time_in_turn({"a": timer("a"), "b": timer("b")}, 3, said.append)
    assert order == ["a", "b"] * 4
    assert found == {"a": [3.0, 5.0, 7.0], "b": [4.0, 6.0, 8.0]}
    assert said[:3] == ["compiling, a", "compiling, b", "round 1 of 3, a"]
    assert len(said) == len(order)


def test_a_call_is_timed_as_often_as_fits_into_the_time(monkeypatch):
    calls = []
    monkeypatch.setattr(timers, "TIMED_SECONDS", 0.2)

    def call():
        calls.append(1)
        time.sleep(0.02)

    seconds = timers.call_timer(call)()
    assert 0.02 <= seconds < 0.2
    assert 2 + 1 <= len(calls) <= 2 + 10  # a call that compiles, a measured call, and as many calls as fit


def test_the_latency_of_every_call_is_kept(monkeypatch):
    monkeypatch.setattr(timers, "CALLS", 5)
    monkeypatch.setattr(timers, "WARM_UP_CALLS", 2)
    calls, seconds = [], []
    mean = timers.latency_timer(lambda: calls.append(1), seconds)()
    assert (len(calls), len(seconds)) == (7, 5)
    assert mean == pytest.approx(np.mean(seconds))


def test_the_bare_network_is_the_network_that_acts():
    actor = LatentActor(jax.random.key(3), Spec((5,), 2), (16, 8))
    actor = jax.tree.map(lambda leaf: leaf + 0.3, actor)  # biases begin at zero
    bare = timers.numpy_network(actor.network)
    inputs = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    expected = np.asarray(clip(actor(inputs[:, :5], inputs[:, 5:])))
    np.testing.assert_allclose([bare(each) for each in inputs], expected, atol=1e-5)
    assert bare(inputs[0]).dtype == np.float32
    assert 0.1 < (np.abs(expected) < 1).mean() < 0.9  # some are clipped, some are not


def test_ratios_are_taken_round_by_round():
    assert timers.median_ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0
