"""The study of benchmarks/beyond: its candidates are small changes of DROL, and its tables are those of the files."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, random_batch

from drol.algorithms import DROL, REGISTERED
from drol.experiments.documents import fill_blocks

PROJECT = Path(__file__).parents[1]
SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}


@pytest.fixture
def candidates(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks" / "beyond"))
    before = dict(REGISTERED)
    yield importlib.import_module("candidates")
    REGISTERED.clear()
    REGISTERED.update(before)


def stepped(kind, **hyperparameters):
    """Return the state before and after an update, its metrics, the batch and the draws."""
    algorithm = kind(**SMALL, **hyperparameters)
    batch = random_batch(16)
    state = algorithm.init(jax.random.key(0), SPEC)
    draws = algorithm.draw(batch, jax.random.key(1))
    return algorithm, state, *algorithm.step(state, batch, draws), batch, draws


def test_relaxed_routing_sends_a_share_of_the_rows_to_a_random_candidate(candidates):
    algorithm, state, _, _, batch, draws = stepped(candidates.RelaxedDROL, epsilon=0.25)
    found = algorithm.route(state.actor.network, batch, draws.latent)
    nearest = DROL(**SMALL).route(state.actor.network, batch, draws.latent)
    np.testing.assert_array_equal(found[:4], draws.latent[:4, 0])
    np.testing.assert_array_equal(found[4:], nearest[4:])


def test_q_on_another_draw_leaves_cloning_as_it_is(candidates):
    algorithm, state, _, metrics, batch, draws = stepped(candidates.FreshDROL)
    _, plain = DROL(**SMALL).step(state, batch, draws)
    np.testing.assert_allclose(metrics["routed_bc_loss"], plain["routed_bc_loss"], rtol=1e-6)
    followed = jnp.clip(state.actor.network(batch.observation, draws.latent[:, 0]), -1, 1)
    q = state.critic.network(batch.observation, followed).min(0).mean()
    np.testing.assert_allclose(metrics["actor_q"], q, rtol=1e-5)
    assert abs(metrics["actor_q"] - plain["actor_q"]) > 1e-6
    assert algorithm.bc_weight == DROL().bc_weight


def test_cloning_weighs_more_where_the_data_is_better(candidates):
    algorithm, state, _, metrics, batch, draws = stepped(candidates.WeightedDROL, q_weight=0.0)
    winner = algorithm.route(state.actor.network, batch, draws.latent)
    action = jnp.clip(state.actor.network(batch.observation, winner), -1, 1)
    critic = state.critic.network
    better = critic(batch.observation, batch.action).min(0) - critic(batch.observation, action).min(0)
    weight = 2 / (1 + np.exp(-np.asarray(better / np.abs(better).mean())))
    expected = (weight * np.square(action - batch.action).mean(-1)).mean()
    np.testing.assert_allclose(metrics["actor_loss"], expected, rtol=1e-5)


def test_units_of_the_data_weigh_cloning_and_q_under_the_critic_of_drol(candidates):
    algorithm, state, after, metrics, batch, draws = stepped(candidates.UnitDROL, temperature=0.5, q_weight=0.3)
    plain, _ = DROL(**SMALL).step(state, batch, draws)
    for left, right in zip(jax.tree.leaves(after.critic), jax.tree.leaves(plain.critic), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    latent, drawn, spread = algorithm.route(state.actor.network, batch, draws.latent)
    output, critic = state.actor.network(batch.observation, latent), state.critic.network
    advantage = critic(batch.observation, batch.action).min(0) - critic(batch.observation, drawn).min(0)
    scale = np.abs(advantage).mean()
    weight = np.exp(np.clip(np.asarray(advantage / (0.5 * scale)), -10, 4))
    cloning = (weight / weight.mean() * np.square(output - batch.action).mean(-1)).mean()
    q = critic(batch.observation, jnp.clip(output, -1, 1)).min(0).mean()
    np.testing.assert_allclose(metrics["actor_loss"], cloning - 0.3 * spread * q / scale, rtol=1e-4)


def test_steering_trains_candidates_by_cloning_alone_and_acts_by_the_chosen_latent(candidates):
    algorithm, state, after, metrics, batch, draws = stepped(candidates.SteeredDROL)
    plain = DROL(**SMALL, q_weight=0.0, bc_weight=1.0)
    cloned, _ = plain.step(plain.init(jax.random.key(0), SPEC), batch, draws)
    for left, right in zip(jax.tree.leaves(after.actor), jax.tree.leaves(cloned.actor), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)
    observation = batch.observation[0]
    chosen = state.actor.network(observation, state.chooser.network(observation))
    acted = algorithm.act(state.policy, observation, jax.random.key(3))
    np.testing.assert_allclose(acted, jnp.clip(chosen, -1, 1), rtol=1e-6)
    assert metrics["choosing_loss"] > 0


def test_the_tables_of_the_document_are_those_of_the_files(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks" / "beyond"))
    table = importlib.import_module("table")
    text = (PROJECT / "docs" / "beyond.md").read_text()
    made = table.made_tables([PROJECT / "results" / name for name in ("paper_small.csv", "beyond.csv")])
    assert fill_blocks(text, table.COMMAND, made) == text
    assert text.count(f"made by: {table.COMMAND}") == len(made)
