import dataclasses
import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from one_pass import one_pass_loss, one_pass_step
from toys import ACTION_SIZE, TINY, random_batch, random_draws, random_state

from drol.algorithms.drol import DROL, Draws, DROLPolicy
from drol.algorithms.parts import uniform_in_ball
from drol.errors import InputError
from drol.networks.actors import LatentActor

pytestmark = pytest.mark.usefixtures("quick_compile")

VARIANTS = [(count, *ways) for count in (1, 4, 16) for ways in (("mean", "min"), ("min", "mean"))]


def assert_close(found, expected, tolerance=1e-6):
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))


def with_outputs_scaled(actor: LatentActor, factor: float) -> LatentActor:
    last = actor.network.layers[-1]
    smaller = jax.tree.map(lambda leaf: factor * leaf, last)
    return eqx.tree_at(lambda tree: tree.network.layers[-1], actor, smaller)


class Echo:
    """An actor whose candidates are its latents."""

    def candidates(self, observation, latent, half_precision=False):
        return latent


@pytest.mark.parametrize(("count", "q_aggregation", "actor_aggregation"), VARIANTS)
def test_a_step_equals_that_of_the_plain_formulation(count, q_aggregation, actor_aggregation):
    algorithm = DROL(
        num_candidates=count,
        q_aggregation=q_aggregation,
        actor_aggregation=actor_aggregation,
        bc_weight=0.7,
        q_weight=1.3,
        hidden_sizes=(16, 16),
    )
    state, batch, draws = random_state(algorithm), random_batch(), random_draws(count)
    candidates = state.actor.network.candidates(batch.observation, draws.latent)
    assert 0.02 < (np.abs(candidates) > 1).mean() < 0.5  # clipping matters, but not everywhere
    found, metrics = jax.jit(lambda *arguments: algorithm.step(*arguments))(state, batch, draws)
    expected, expected_metrics = jax.jit(one_pass_step)(algorithm, state, batch, draws)
    for name, value in expected_metrics.items():
        assert metrics[name] == pytest.approx(float(value), rel=1e-6, abs=1e-6), name
    for part in ("actor", "critic"):
        ours, theirs, before = getattr(found, part), getattr(expected, part), getattr(state, part)
        # After one step the first moment of Adam is a tenth of the gradient.
        assert_close(
            jax.tree.map(lambda moment: 10 * moment, ours.optimiser.mu),
            jax.tree.map(lambda moment: 10 * moment, theirs.optimiser.mu),
        )
        assert_close(ours.network, theirs.network)
        moved = [np.abs(new - old).max() for new, old in zip(*map(jax.tree.leaves, (ours, before)), strict=True)]
        assert min(moved) > 0
    assert_close(found.target_critic, expected.target_critic)


def test_the_gradient_of_the_actor_loss_is_the_one_that_adam_sees():
    state, batch, draws = random_state(TINY), random_batch(), random_draws(4)

    @jax.jit
    def gradient_and_step(state, batch, draws):
        winner = TINY.route(state.actor.network, batch, draws.latent)
        gradient, _ = jax.grad(TINY.actor_loss, has_aux=True)(state.actor.network, state.critic.network, batch, winner)
        return gradient, TINY.step(state, batch, draws)[0].actor.optimiser.mu

    gradient, moment = gradient_and_step(state, batch, draws)
    assert_close(jax.tree.map(lambda leaf: 10 * leaf, moment), gradient)


def test_candidates_that_did_not_win_get_no_gradient_at_all():
    state, batch, draws = random_state(TINY), random_batch(), random_draws(4)
    actor, critic = state.actor.network, state.critic.network

    @jax.jit
    @jax.grad
    def routed_gradient(latent):
        return TINY.actor_loss(actor, critic, batch, TINY.route(actor, batch, latent))[0]

    @jax.jit
    @jax.grad
    def plain_gradient(latent):
        altered = Draws(latent, draws.next_latent)
        return one_pass_loss((actor, critic), TINY, state.target_critic, batch, altered)[1]["actor_loss"]

    gradient = np.asarray(routed_gradient(draws.latent))  # [batch, K, action]
    candidates = np.clip(actor.candidates(batch.observation, draws.latent), -1, 1)
    winner = np.square(candidates - np.asarray(batch.action)[:, None]).sum(-1).argmin(-1)
    won = np.arange(4) == winner[:, None]
    assert (gradient[~won] == 0).all()
    inside = (np.abs(candidates[won]) < 1).all(-1)
    assert inside.sum() > 10
    assert (np.abs(gradient[won][inside]).max(-1) > 0).all()
    assert_close(gradient, plain_gradient(draws.latent))


def test_ties_go_to_the_lowest_index():
    one = dataclasses.replace(random_batch(1), action=jnp.asarray([[0.9, 0.9]]))
    latent = jnp.asarray([[[-1.0, 0.0], [1.5, 1.5], [0.0, 0.0], [2.0, 2.0]]])  # 1 and 3 are both clipped to (1, 1)
    np.testing.assert_array_equal(TINY.route(Echo(), one, latent), [[1.5, 1.5]])
    np.testing.assert_array_equal(TINY.route(Echo(), one, latent[:, ::-1]), [[2.0, 2.0]])


def test_routing_in_half_precision_differs_only_where_two_candidates_are_about_as_near():
    half = dataclasses.replace(TINY, num_candidates=16, routing_precision="bfloat16")
    full = dataclasses.replace(TINY, num_candidates=16)
    assert half.half_precision
    assert not full.half_precision
    state, batch, draws = random_state(full), random_batch(512), random_draws(16, 512)
    actor = state.actor.network
    chosen = {each: each.route(actor, batch, draws.latent) for each in (full, half)}

    def distance(latent):
        return np.linalg.norm(np.clip(actor(batch.observation, latent), -1, 1) - batch.action, axis=-1)

    same = (chosen[full] == chosen[half]).all(-1)
    assert 0.9 < same.mean() < 1
    # bfloat16 has 8 bits, and values here are about 1: the candidate taken is at most a few hundredths further away.
    assert (distance(chosen[half]) - distance(chosen[full])).max() < 0.03


def test_the_equation_compares_candidates_before_clipping():
    one = dataclasses.replace(random_batch(1), action=jnp.asarray([[0.9, 0.9]]))
    latent = jnp.asarray([[[3.0, 3.0], [0.5, 0.5]]])  # the first is nearest once it is clipped, else the second
    np.testing.assert_array_equal(TINY.route(Echo(), one, latent), [[3.0, 3.0]])
    equation = dataclasses.replace(TINY, objective="equation")
    np.testing.assert_array_equal(equation.route(Echo(), one, latent), [[0.5, 0.5]])


@pytest.mark.parametrize("aggregation", ["mean", "min"])
def test_the_loss_of_the_equation_is_the_squared_norm_minus_alpha_times_q(aggregation):
    algorithm = dataclasses.replace(TINY, objective="equation", alpha=0.3, actor_aggregation=aggregation)
    state, batch, draws = random_state(algorithm), random_batch(), random_draws(4)
    actor, critic = with_outputs_scaled(state.actor.network, 3.0), state.critic.network
    winner = draws.latent[:, 0]
    action = np.asarray(actor(batch.observation, winner))
    assert (np.abs(action) > 1).any()  # otherwise this would not show that nothing is clipped
    q = np.asarray(critic(batch.observation, action))
    q = {"mean": q.mean(0), "min": q.min(0)}[aggregation]
    squared_norm = np.square(action - np.asarray(batch.action)).sum(-1)
    loss, metrics = algorithm.actor_loss(actor, critic, batch, winner)
    assert loss == pytest.approx(np.mean(squared_norm - 0.3 * q), rel=1e-6, abs=1e-6)
    assert metrics["routed_bc_loss"] == pytest.approx(squared_norm.mean(), rel=1e-6)


def test_the_target_of_the_equation_is_not_clipped_either():
    batch, draws = random_batch(), random_draws(4)
    for objective, bound in (("equation", np.inf), ("released", 1.0)):
        algorithm = dataclasses.replace(TINY, objective=objective)
        state = random_state(algorithm)
        actor = with_outputs_scaled(state.actor.network, 3.0)
        next_action = np.asarray(actor(batch.next_observation, draws.next_latent))
        assert (np.abs(next_action) > 1).any()
        next_q = np.asarray(state.target_critic(batch.next_observation, np.clip(next_action, -bound, bound))).mean(0)
        expected = np.asarray(batch.reward) + 0.99 * np.asarray(batch.continues) * next_q
        found = algorithm.bellman_target(state.target_critic, actor, batch, draws.next_latent)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_inside_the_box_the_released_gradient_is_that_of_the_equation_times_bc_weight_over_d_a():
    released = dataclasses.replace(TINY, bc_weight=0.4, q_weight=1.7)
    state, batch, draws = random_state(released), random_batch(), random_draws(4)
    actor, critic = with_outputs_scaled(state.actor.network, 0.3), state.critic.network
    winner = released.route(actor, batch, draws.latent)
    action = actor(batch.observation, winner)
    assert np.abs(action).max() < 1
    scale = 1 / np.abs(critic(batch.observation, action).min(0)).mean()
    alpha = ACTION_SIZE * 1.7 * float(scale) / 0.4
    equation = dataclasses.replace(TINY, objective="equation", alpha=alpha)
    np.testing.assert_array_equal(equation.route(actor, batch, draws.latent), winner)

    def gradient(algorithm):
        return jax.jit(jax.grad(lambda actor: algorithm.actor_loss(actor, critic, batch, winner)[0]))(actor)

    expected = gradient(released)
    assert_close(jax.tree.map(lambda leaf: 0.4 / ACTION_SIZE * leaf, gradient(equation)), expected)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected)) > 0.05


@pytest.mark.parametrize("count", [1, 5])
def test_diagnostics_equal_a_double_loop_over_candidates(count):
    draws = random_draws(count)

    class SameDraws(DROL):
        def draw(self, batch, key):
            return draws

    algorithm = SameDraws(num_candidates=count, hidden_sizes=(16, 16))
    state, batch = random_state(algorithm), random_batch()
    found = algorithm.diagnose(state, batch, None)
    candidates = np.clip(state.actor.network.candidates(batch.observation, draws.latent), -1, 1).astype(np.float64)
    pairs, divergence, winners, errors, single = [], [], [], [], []
    for each, action in zip(candidates, np.asarray(batch.action), strict=True):
        pairs += [np.square(each[j] - each[k]).mean() for j in range(count) for k in range(count) if j != k]
        divergence.append(np.square(each - each.mean(0)).mean())
        squared_error = np.square(each - action).mean(-1)
        winners.append(squared_error.argmin())
        errors.append(squared_error.min())
        single.append(squared_error[0])
    share = np.bincount(winners, minlength=count) / len(winners)
    squared_distance = np.mean(pairs) if pairs else 0.0
    expected = {
        "candidate_squared_distance": squared_distance,
        "candidate_distance": np.sqrt(squared_distance),
        "candidate_divergence": np.mean(divergence),
        "routed_bc_loss": np.mean(errors),
        "single_sample_error": np.mean(single),
        "winner_entropy": -sum(part * np.log(part) for part in share if part > 0),
        "winner_largest_share": share.max(),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name


def test_draws_are_independent_and_fill_the_ball_of_radius_sqrt_d_a():
    algorithm = dataclasses.replace(TINY, num_candidates=16)
    draws = jax.jit(lambda batch, key: algorithm.draw(batch, key))(random_batch(256), jax.random.key(0))
    points = np.concatenate([np.asarray(draws.latent).reshape(-1, 2), np.asarray(draws.next_latent)])
    assert len(np.unique(points, axis=0)) == 256 * 17
    length = np.linalg.norm(points, axis=-1)
    assert 0.99 * np.sqrt(2) < length.max() <= np.sqrt(2)


@pytest.fixture(scope="module")
def acting():
    """An actor that often leaves the box, observations, keys, and what `act` does with them for 1 and for 8 draws."""
    state = random_state(TINY)
    policy = DROLPolicy(with_outputs_scaled(state.actor.network, 3.0), state.critic.network)
    observations = random_batch().observation
    keys = jax.random.split(jax.random.key(2), len(observations))

    @functools.partial(jax.jit, static_argnames="best_of")
    def act(keys, best_of):
        return jax.vmap(lambda observation, key: TINY.act(policy, observation, key, best_of))(observations, keys)

    return policy, observations, keys, act


def test_actions_lie_in_the_box_and_reach_its_edge(acting):
    _, observations, keys, act = acting
    for best_of in (1, 8):
        actions = act(keys, best_of)
        assert actions.shape == (len(observations), ACTION_SIZE)
        assert np.abs(actions).max() == 1


def test_best_of_takes_the_action_with_the_highest_mean_q(acting):
    policy, observations, keys, act = acting
    latent = jax.jit(jax.vmap(lambda key: uniform_in_ball(key, (8, ACTION_SIZE), np.sqrt(ACTION_SIZE))))(keys)
    repeated = jnp.repeat(observations[:, None], 8, 1)
    actions = np.clip(policy.actor(repeated, latent), -1, 1)  # [batch, 8, action]
    values = np.asarray(policy.critic(repeated, actions)).mean(0)
    chosen = values.argmax(-1)
    assert len(set(chosen)) > 3  # it is not always the same draw
    np.testing.assert_allclose(act(keys, 8), actions[np.arange(len(chosen)), chosen], rtol=0, atol=1e-5)


def test_the_same_key_gives_the_same_action_and_another_key_another(acting):
    _, _, keys, act = acting
    for best_of in (1, 8):
        np.testing.assert_array_equal(act(keys, best_of), act(keys, best_of))
        different = np.asarray(act(keys, best_of) != act(keys[::-1], best_of)).any(-1)
        assert different.mean() > 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_candidates": 0}, "num_candidates is 0; it must be at least 1"),
        ({"num_candidates": 2.5}, "num_candidates is 2.5; it must be of type int"),
        ({"num_candidates": True}, "num_candidates is True; it must be of type int"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"bc_weight": -1.0}, "bc_weight is -1.0; it must be at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be at least 0"),
        ({"bc_weight": "1"}, "bc_weight is '1'; it must be of type float"),
        ({"objective": "x"}, "objective is 'x'; it must be one of released, equation"),
        ({"q_aggregation": "max"}, "q_aggregation is 'max'; it must be one of mean, min"),
        ({"normalise_q": 1}, "normalise_q is 1; it must be of type bool"),
        ({"hidden_sizes": ()}, "hidden_sizes is empty; it must hold at least one number"),
        ({"hidden_sizes": (16, 0)}, "hidden_sizes is (16, 0); it must be at least 1"),
    ],
)
def test_a_bad_hyperparameter_is_named_with_what_is_allowed(values, message):
    with pytest.raises(InputError) as caught:
        DROL(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize("sizes", [(2.5,), ("16",), (16, True)])
def test_hidden_sizes_must_be_whole_numbers(sizes):
    with pytest.raises(InputError, match="hidden_sizes"):
        DROL(hidden_sizes=sizes)


def test_an_unknown_hyperparameter_is_answered_with_the_nearest():
    with pytest.raises(InputError) as caught:
        DROL.from_dict({"num_candidate": 4})
    assert str(caught.value) == "DROL has no hyperparameter 'num_candidate'; did you mean num_candidates?"
    with pytest.raises(InputError, match="DROL has no hyperparameter 'zzz'; it has bc_weight, num_candidates"):
        DROL.from_dict({"zzz": 4})


def test_hyperparameters_survive_json():
    algorithm = DROL(num_candidates=5, q_aggregation="min", bc_weight=0.1, hidden_sizes=(16, 16))
    again = DROL.from_dict(json.loads(json.dumps(algorithm.to_dict())))
    assert again.to_dict() == algorithm.to_dict()
    assert again.hidden_sizes == (16, 16)
    assert jax.tree.structure(again) == jax.tree.structure(algorithm)
