"""DROL against numbers of the released implementation: losses, metrics, gradients and three successive updates.

`fixtures/drol_*.npz` are small files of ours with the released code's numbers; the files they were taken from are used
too when they lie beside the project.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drol.algorithms.drol import DROL, Draws, DROLState
from drol.algorithms.parts import ball_point, trainable
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.mlp import MLP
from drol.types import Spec, Transition

FIXTURES = Path(__file__).parent / "fixtures"
SHARED = Path(__file__).parents[3] / "shared" / "reference"
VARIANTS = ("drol_k1_mean", "drol_k1_min", "drol_k4_mean", "drol_k4_min", "drol_k4_mean_rawq")


@pytest.fixture(params=[*(FIXTURES / f"{name}.npz" for name in VARIANTS)], ids=VARIANTS)
def reference(request):
    with np.load(request.param) as file:
        return dict(file)


def mlp(reference, section, name, like: MLP, member=None) -> MLP:
    """The parameters stored under a name, in the shape of `like`."""
    prefix = f"{section}/{name}" if member is None else f"{section}/{name}/{member}"
    layers = [
        eqx.tree_at(
            lambda layer: (layer.kernel, layer.bias),
            layer,
            (reference[f"{prefix}/{index}/kernel"], reference[f"{prefix}/{index}/bias"]),
        )
        for index, layer in enumerate(like.layers)
    ]
    norms = [
        eqx.tree_at(
            lambda norm: (norm.scale, norm.bias),
            norm,
            (reference[f"{prefix}/{index}/norm_scale"], reference[f"{prefix}/{index}/norm_bias"]),
        )
        for index, norm in enumerate(like.norms)
    ]
    return eqx.tree_at(lambda tree: (tree.layers, tree.norms), like, (tuple(layers), tuple(norms)))


def critic(reference, section, name, like: QEnsemble) -> QEnsemble:
    one = jax.tree.map(lambda leaf: leaf[0], like.members)
    members = [mlp(reference, section, name, one, member) for member in (0, 1)]
    return eqx.tree_at(lambda tree: tree.members, like, jax.tree.map(lambda *leaves: jnp.stack(leaves), *members))


def problem(reference):
    """The algorithm, the state before the first update, the batch and the draws of the three updates."""
    config = json.loads(str(reference["config"]))
    algorithm = DROL(
        bc_weight=float(config["bc_coef"]),
        q_weight=float(config["q_coef"]),
        num_candidates=config["num_candidates"],
        discount=config["discount"],
        q_aggregation=config["q_agg"],
        actor_aggregation=config["actor_q_agg"],
        normalise_q=config["normalize_q_loss"],
        target_rate=config["tau"],
        learning_rate=config["lr"],
        hidden_sizes=tuple(config["hidden"]),
        batch_size=config["batch_size"],
    )
    like = algorithm.init(jax.random.key(0), Spec((config["observation_dim"],), config["action_dim"]))
    state = networks(reference, "params", like)
    batch = Transition(
        observation=reference["batch/observation"],
        action=reference["batch/action"],
        reward=reference["batch/reward"],
        continues=reference["batch/mask"],
        next_observation=reference["batch/next_observation"],
        next_action=reference["batch/next_action"],
        next_action_known=jnp.ones(config["batch_size"]),
    )
    draws = [Draws(reference[f"draws/{u}/latent"], reference[f"draws/{u}/next_latent"]) for u in (1, 2, 3)]
    return algorithm, state, jax.tree.map(jnp.asarray, batch), jax.tree.map(jnp.asarray, draws)


def networks(reference, section, like: DROLState) -> DROLState:
    actor: LatentActor = eqx.tree_at(
        lambda tree: tree.network, like.actor.network, mlp(reference, section, "actor", like.actor.network.network)
    )
    online = critic(reference, section, "critic", like.critic.network)
    target = critic(reference, section, "target_critic", like.target_critic)
    return DROLState(trainable(actor), trainable(online), target)


def assert_close(found, expected, tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=tolerance), found, expected)


def test_losses_and_metrics_agree(reference):
    algorithm, state, batch, draws = problem(reference)
    for number, draw in enumerate(draws, 1):
        expected = json.loads(str(reference[f"metrics/{number}"]))
        state, metrics = jax.jit(algorithm.step)(state, batch, draw)
        names = {"actor_loss": "actor_loss", "critic_loss": "critic_loss", "routed_bc_loss": "bc_loss", "actor_q": "q"}
        for ours, theirs in {**names, "data_q": "q_mean"}.items():
            assert metrics[ours] == pytest.approx(expected[theirs], rel=1e-5, abs=1e-5), (number, ours)
        assert metrics["actor_loss"] + metrics["critic_loss"] == pytest.approx(
            expected["total_loss"], rel=1e-5, abs=1e-5
        )


def test_routing_and_target_agree(reference):
    algorithm, state, batch, draws = problem(reference)
    actor = state.actor.network
    np.testing.assert_allclose(
        jnp.clip(actor.candidates(batch.observation, draws[0].latent), -1, 1), reference["aux/candidate"], atol=1e-5
    )
    winner = np.take_along_axis(np.asarray(draws[0].latent), reference["aux/winner"][:, None, None], 1)[:, 0]
    np.testing.assert_array_equal(algorithm.route(actor, batch, draws[0].latent), winner)
    target = algorithm.bellman_target(state.target_critic, actor, batch, draws[0].next_latent)
    np.testing.assert_allclose(target, reference["aux/target"], rtol=1e-5, atol=1e-5)


def test_gradients_agree(reference):
    algorithm, state, batch, draws = problem(reference)
    actor, online = state.actor.network, state.critic.network
    winner = algorithm.route(actor, batch, draws[0].latent)
    target = algorithm.bellman_target(state.target_critic, actor, batch, draws[0].next_latent)
    actor_gradient, _ = jax.grad(algorithm.actor_loss, has_aux=True)(actor, online, batch, winner)
    critic_gradient, _ = jax.grad(algorithm.critic_loss, has_aux=True)(online, batch, target)
    expected_actor = mlp(reference, "grads", "actor", actor.network)
    expected_critic = critic(reference, "grads", "critic", online)
    # The stored gradients themselves are good to 1e-5 of the largest entry of an array (float32).
    for found, expected in ((actor_gradient.network, expected_actor), (critic_gradient, expected_critic)):
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * max(1.0, np.abs(theirs).max()))


def test_one_and_three_updates_agree(reference):
    algorithm, state, batch, draws = problem(reference)
    like = state
    step = jax.jit(algorithm.step)
    for number, draw in enumerate(draws, 1):
        state, _ = step(state, batch, draw)
        if number in (1, 3):
            expected = networks(reference, f"after{number}", like)
            assert_close(state.actor.network, expected.actor.network, 1e-6)
            assert_close(state.critic.network, expected.critic.network, 1e-6)
            assert_close(state.target_critic, expected.target_critic, 1e-6)


def test_diagnostics_agree(reference):
    algorithm, state, batch, draws = problem(reference)
    expected = json.loads(str(reference["metrics/1"]))

    class SameDraws(DROL):
        def draw(self, batch, key):
            return draws[0]

    metrics = SameDraws(**algorithm.to_dict()).diagnose(state, batch, jax.random.key(0))
    for ours, theirs in {
        "routed_bc_loss": "min_d2",
        "candidate_divergence": "candidate_divergence",
        "candidate_squared_distance": "candidate_pairwise_dist2",
        "candidate_distance": "candidate_pairwise_dist",
        "winner_entropy": "winner_entropy",
        "winner_largest_share": "winner_max_share",
    }.items():
        assert metrics[ours] == pytest.approx(expected[theirs], rel=1e-5, abs=1e-5), ours


def test_ball_sampler_and_test_time_action_agree(reference):
    _, state, batch, draws = problem(reference)
    radius = float(np.sqrt(batch.action.shape[-1]))
    latent = ball_point(reference["draws/1/latent_normal"], reference["draws/1/latent_uniform"], radius)
    np.testing.assert_allclose(latent, draws[0].latent, atol=1e-6)
    actions = jnp.clip(state.actor.network(reference["sample/observation"], reference["sample/noise"]), -1, 1)
    np.testing.assert_allclose(actions, reference["sample/action"], atol=1e-5)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the original files are not beside the project")
@pytest.mark.parametrize("name", VARIANTS)
def test_fixtures_are_the_original_numbers(name):
    with np.load(FIXTURES / f"{name}.npz") as ours, np.load(SHARED / f"{name}.npz") as theirs:
        assert set(ours) <= set(theirs)
        for key in ours:
            np.testing.assert_array_equal(ours[key], theirs[key])
