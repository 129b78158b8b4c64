import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import SPEC, random_batch

from drol.algorithms import DROL
from drol.algorithms.beyond.drol_choice import DROLChoice, cloning_loss, distance_to_nearest, standardise
from drol.algorithms.routing import Draws
from drol.errors import InputError

SMALL = {"hidden_sizes": (16, 16), "batch_size": 16}
ROWS = np.arange(16)


def made(**hyperparameters):
    """Return an algorithm, a state whose target critic differs from its critic, a batch and the draws of an update."""
    algorithm = DROLChoice(**SMALL, **hyperparameters)
    batch = random_batch(16)
    state = algorithm.init(jax.random.key(0), SPEC)
    other = algorithm.init(jax.random.key(7), SPEC).critic.network
    state = eqx.tree_at(lambda each: each.target_critic, state, other)
    return algorithm, state, batch, algorithm.draw(batch, jax.random.key(1))


def assert_close(ours, theirs):
    for left, right in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)


def candidates_of(actor, observation, latent):
    """Return clipped candidates [batch, K, action], one latent at a time."""
    each = [np.asarray(actor(observation, latent[:, number])) for number in range(latent.shape[1])]
    return np.clip(np.stack(each, 1), -1, 1)


def values_of(critic, observation, candidates):
    """Return values [ensemble, batch, K], one candidate at a time."""
    each = [np.asarray(critic(observation, jnp.asarray(candidates[:, k]))) for k in range(candidates.shape[1])]
    return np.stack(each, -1)


def test_the_support_learns_as_drol_without_q():
    algorithm, state, batch, draws = made()
    drol = DROL(**SMALL, q_weight=0.0)
    start = drol.init(jax.random.key(3), SPEC)
    start = type(start)(state.actor, start.critic, start.target_critic)
    after, metrics = algorithm.step(state, batch, draws)
    inside = np.abs(state.actor.network(batch.observation, algorithm.route(
        jnp.clip(state.actor.network.candidates(batch.observation, draws.latent), -1, 1), batch.action, draws
    ))) < 1  # fmt: skip
    assert inside.all()  # so that DROL, whose loss sees the clipped action, has the same gradient
    theirs, their_metrics = drol.step(start, batch, Draws(draws.latent, draws.next_latent[:, 0]))
    np.testing.assert_allclose(metrics["routed_bc_loss"], their_metrics["routed_bc_loss"], rtol=1e-5)
    assert_close(after.actor.network, theirs.actor.network)


@pytest.mark.parametrize("chooser", ["mean", "min", "lcb"])
def test_the_online_critic_chooses_the_next_action_and_the_target_critic_values_it(chooser):
    aggregations = {
        "mean": lambda q: q.mean(0),
        "min": lambda q: q.min(0),
        "lcb": lambda q: q.mean(0) - 0.5 * q.std(0),
    }
    algorithm, state, batch, draws = made(chooser=chooser, q_aggregation=chooser, num_critics=4, discount=0.9)
    candidates = candidates_of(state.actor.network, batch.next_observation, draws.next_latent)
    assert candidates.shape == (16, 4, SPEC.action_size)
    best = aggregations[chooser](values_of(state.critic.network, batch.next_observation, candidates)).argmax(-1)
    assert len(set(best)) > 2
    value = np.asarray(state.target_critic(batch.next_observation, jnp.asarray(candidates[ROWS, best])))
    assert value.shape == (4, 16)
    expected = batch.reward + 0.9 * batch.continues * aggregations[chooser](value)
    found = algorithm.bellman_target(state, batch, draws.next_latent)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_nearest_candidate_of_the_student_learns_the_chosen_action_and_its_average_acts():
    algorithm, state, batch, draws = made(average_rate=0.25, student_candidates=3, target_candidates=5)
    assert state.student is not None
    candidates = candidates_of(state.actor.network, batch.observation, draws.latent[:, :5])
    best = values_of(state.critic.network, batch.observation, candidates).mean(0).argmax(-1)
    chosen = candidates[ROWS, best]
    own = candidates_of(state.student.network, batch.observation, draws.student_latent)
    nearest = np.square(own - chosen[:, None]).sum(-1).argmin(-1)
    output = state.student.network(batch.observation, draws.student_latent[ROWS, nearest])
    after, metrics = algorithm.step(state, batch, draws)
    np.testing.assert_allclose(metrics["student_loss"], np.square(output - chosen).mean(), rtol=1e-4)
    assert after.student is not None
    mixed = jax.tree.map(lambda old, new: 0.75 * old + 0.25 * new, state.average, after.student.network)
    assert_close(after.policy.student, mixed)


def test_more_candidates_in_the_choice_than_in_the_routing():
    algorithm, state, batch, draws = made(num_candidates=2, target_candidates=6)
    assert draws.latent.shape[1] == draws.next_latent.shape[1] == 6
    candidates = candidates_of(state.actor.network, batch.observation, draws.latent[:, :2])
    found = algorithm.route(jnp.asarray(candidates), batch.action, draws)
    first_two = (found[:, None] == draws.latent[:, :2]).all(-1).any(-1)
    assert first_two.all()
    assert np.isfinite(algorithm.step(state, batch, draws)[1]["student_loss"])


def test_without_a_student_there_is_nothing_to_act_in_one_pass():
    algorithm, state, batch, draws = made(student_candidates=0)
    after, metrics = algorithm.step(state, batch, draws)
    assert after.student is None
    assert after.policy.student is None
    assert "student_loss" not in metrics
    with pytest.raises(InputError, match=r"^one_pass is true, but student_candidates is 0; train a student"):
        algorithm.acting_with({"one_pass": True})
    taught, _ = DROLChoice(**SMALL).step(made()[1], batch, made()[3])
    assert_close(after.critic, taught.critic)  # the student changes nothing else


def test_an_evaluation_may_act_in_one_pass_which_is_one_draw_of_the_student():
    algorithm, state, batch, _ = made()
    observation, key = batch.observation[0], jax.random.key(5)
    one_pass = algorithm.acting_with({"one_pass": True})
    assert (algorithm.default_best_of, one_pass.default_best_of) == (4, 1)
    drol = DROL(**SMALL)
    student = type(drol.init(jax.random.key(0), SPEC).policy)(state.policy.student, state.policy.critic)
    np.testing.assert_array_equal(
        one_pass.act(state.policy, observation, key), drol.act(student, observation, key, best_of=1)
    )
    support = type(student)(state.policy.actor, state.policy.critic)
    np.testing.assert_array_equal(
        algorithm.act(state.policy, observation, key), drol.act(support, observation, key, best_of=4)
    )


def test_a_choice_that_no_exported_policy_can_make_is_refused():
    algorithm, state, _, _ = made()
    for changes in ({"chooser": "lcb"}, {"support_weight": 1.0}):
        with pytest.raises(InputError, match="can be exported"):
            algorithm.acting_with(changes).sampler(state.policy)
        algorithm.acting_with({"one_pass": True, **changes}).sampler(state.policy)
    assert algorithm.acting_with({"chooser": "min"}).sampler(state.policy).aggregation == "min"


def test_a_candidate_that_stands_alone_loses_against_support():
    actions = jnp.asarray([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.9, 0.9]])
    np.testing.assert_allclose(distance_to_nearest(actions), [0.1, 0.1, 0.1, np.hypot(0.9, 0.8)], rtol=1e-5)
    z = standardise(jnp.asarray([1.0, 2.0, 3.0]) * 1000)
    np.testing.assert_allclose(z, np.asarray([-1, 0, 1]) * np.sqrt(1.5), rtol=1e-5)
    assert np.ptp(standardise(jnp.full(3, 0.1))) == 0

    def outlier_is_best(observation, actions):
        del observation
        return jnp.stack([actions.sum(-1)] * 2)

    for weight, best in ((0.0, 3), (3.0, 1)):
        algorithm = DROLChoice(**SMALL, support_weight=weight)
        expected = actions[best] if best == 3 else actions[jnp.asarray([0, 0.1, 0.1, 0]).argmax()]
        np.testing.assert_array_equal(algorithm.choose(outlier_is_best, jnp.zeros(3), actions), expected)  # pyright: ignore


def test_relaxed_routing_trains_a_random_candidate_in_a_share_of_the_rows():
    algorithm, state, batch, draws = made(relaxed=0.25)
    candidates = jnp.clip(state.actor.network.candidates(batch.observation, draws.latent), -1, 1)
    draws = dataclasses.replace(draws, relaxed=jnp.where(jnp.arange(16) < 4, 0.2, 0.3))
    found = algorithm.route(candidates, batch.action, draws)
    nearest = DROLChoice(**SMALL).route(candidates, batch.action, draws)
    np.testing.assert_array_equal(found[:4], draws.latent[:4, 0])
    np.testing.assert_array_equal(found[4:], nearest[4:])
    assert (nearest[:4] != draws.latent[:4, 0]).any()


def test_a_climb_shifts_the_cloned_action_uphill_and_never_further_than_its_share_of_the_spread():
    algorithm, state, batch, draws = made(climb=0.1)
    candidates = jnp.clip(state.actor.network.candidates(batch.observation, draws.latent), -1, 1)
    shift = algorithm.climbed(state.critic.network, batch, candidates) - batch.action
    centre = candidates.mean(1, keepdims=True)
    spread = np.sqrt(np.square(candidates - centre).sum(-1).mean(-1))
    length = np.linalg.norm(shift, axis=-1)
    assert (length <= 0.1 * spread * (1 + 1e-4)).all()
    assert (length > 0.05 * spread).mean() > 0.3
    slope = jax.grad(lambda action: state.critic.network(batch.observation, action).mean(0).sum())(batch.action)
    assert ((shift * slope).sum(-1) > 0).all()
    goal = batch.action + shift
    winner = algorithm.route(candidates, goal, draws)
    expected, _ = cloning_loss(state.actor.network, batch.observation, goal, winner, "loss")
    np.testing.assert_allclose(algorithm.step(state, batch, draws)[1]["routed_bc_loss"], expected, rtol=1e-5)
