"""Every method against numbers of its released implementation: losses, gradients and three successive updates.

`fixtures/*.npz` are our small copies of the released codes' numbers. If the original files lie beside the project, a
test compares the copies with them.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.loading import FIXTURES, VARIANTS, load

from drol.algorithms.parts import best_action, clip, flow_action
from drol.algorithms.sorl import shortcut_action

SHARED = Path(__file__).parents[3] / "shared" / "reference"


@pytest.fixture(params=VARIANTS)
def problem(request):
    return load(request.param)


def test_losses_and_metrics_of_three_updates_agree(problem):
    state = problem.state
    for number, draws in enumerate(problem.draws, 1):
        expected = problem.metrics(number)
        state, metrics = problem.step(state, draws)
        for ours, theirs in problem.method.metrics.items():
            assert metrics[ours] == pytest.approx(expected[theirs], rel=1e-5, abs=1e-5), (number, ours)


def test_parameters_after_one_and_three_updates_agree(problem):
    state = problem.state
    for number, draws in enumerate(problem.draws, 1):
        state, _ = problem.step(state, draws)
        if number == 2:
            continue
        expected = problem.stored_state(f"after{number}")
        for name, where in problem.method.networks.items():
            for ours, theirs in zip(jax.tree.leaves(where(state)), jax.tree.leaves(where(expected)), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6, err_msg=f"{name} after {number}")


def first_gradients(problem, name):
    """The gradient of the first update: Adam's first moment is a tenth of it."""
    state, _ = problem.step(problem.state, problem.draws[0])
    part = {"refine": "refinement"}.get(name, name)
    if hasattr(state, "networks"):
        return jax.tree.map(lambda moment: moment * 10, getattr(state.networks.optimiser.mu, part))
    return jax.tree.map(lambda moment: moment * 10, getattr(state, part).optimiser.mu)


def assert_gradients_agree(found, expected, name):
    # The stored gradients are good to 1e-5 of the largest entry of an array, being float32 themselves.
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * scale, err_msg=name)


# SORL takes two steps in one update: its own test is below.
@pytest.mark.parametrize("problem", [name for name in VARIANTS if not name.startswith("sorl")], indirect=True)
def test_gradients_of_the_first_update_agree(problem):
    names = [name for name in problem.method.networks if not name.startswith("target")]
    expected = problem.stored_state("grads", names)
    for name in names:
        assert_gradients_agree(first_gradients(problem, name), problem.method.networks[name](expected), name)


@pytest.mark.parametrize("name", ["sorl_mean", "sorl_min"])
def test_gradients_of_both_steps_of_sorl_agree(name):
    problem = load(name)
    before = problem.state.networks.network
    (draws,) = problem.draws[0]
    gradient, _ = jax.grad(problem.algorithm.critic_loss, has_aux=True)(
        before, problem.state.target.critic, problem.batch, draws
    )
    expected = problem.stored_state("grads_critic_step", ["actor", "critic"]).networks.network
    assert_gradients_agree(gradient, expected, "critic step")
    moved = problem.stored_state("params_actor_step", ["actor"]).networks.network.actor
    actor_gradient, _ = jax.grad(problem.algorithm.actor_loss, has_aux=True)(
        moved, before.critic, problem.state.target.actor, problem.batch, draws
    )
    expected = problem.stored_state("grads_actor_step", ["actor"]).networks.network.actor
    assert_gradients_agree(actor_gradient, expected, "actor step")


def test_actions_at_test_time_agree(problem):
    reference, policy, method = problem.reference, problem.state.policy, problem.config["method"]
    observation = jnp.asarray(reference["sample/observation"])
    if method == "sorl":
        noise = jnp.asarray(reference["sample/noise"])
        for steps in (1, 2, 4, 8):
            action = shortcut_action(policy.actor, observation, noise, steps)
            np.testing.assert_allclose(action, reference[f"sample/action_k{steps}"], atol=1e-5)
        steps = problem.config["sample_best_k"]
        for row in range(len(observation)):
            many = jnp.broadcast_to(
                observation[row], (reference["sample/best_noise"].shape[1], *observation[row].shape)
            )
            actions = shortcut_action(policy.actor, many, jnp.asarray(reference["sample/best_noise"][row]), steps)
            best = best_action(policy.critic, observation[row], actions, float(steps), how=problem.config["q_agg"])
            np.testing.assert_allclose(best, reference["sample/best_action"][row], atol=1e-5)
        return
    if method in ("bc", "iql", "rebrac"):
        act = jax.vmap(lambda each: problem.algorithm.act(policy, each, jax.random.key(0)))
        np.testing.assert_allclose(act(observation), reference["sample/action"], atol=1e-5)
        return
    noise = jnp.asarray(reference["sample/noise"])
    if method == "ifql":
        for row in range(len(observation)):
            many = jnp.broadcast_to(observation[row], (noise.shape[1], *observation[row].shape))
            actions = flow_action(policy.flow, many, noise[row], problem.algorithm.flow_steps)
            best = best_action(policy.critic, observation[row], actions, how="min")
            np.testing.assert_allclose(best, reference["sample/action"][row], atol=1e-5)
        return
    if method == "deflow":
        actions = problem.algorithm.refined_action(policy.flow, policy.refinement, observation, noise)
    elif method in ("fbrac", "fawac"):
        actions = flow_action(policy.flow, observation, noise, problem.algorithm.flow_steps)
    else:
        actions = clip(policy.actor(observation, noise))
    np.testing.assert_allclose(actions, reference["sample/action"], atol=1e-5)


@pytest.mark.parametrize("name", ["rebrac_even", "rebrac_odd"])
def test_a_frozen_actor_stands_still_on_skipped_steps(name):
    problem = load(name)
    frozen = type(problem.algorithm)(**{**problem.algorithm.to_dict(), "skipped_actor": "frozen"})
    state = problem.state
    for full, draws in zip(problem.config["full_update"], problem.draws, strict=True):
        new, _ = frozen.step(state, problem.batch, *draws)
        assert eqx.tree_equal(new.policy, state.policy) == (not full)
        state = new


@pytest.mark.skipif(not SHARED.is_dir(), reason="the original files are not beside the project")
@pytest.mark.parametrize("name", VARIANTS)
def test_fixtures_are_the_original_numbers(name):
    with np.load(FIXTURES / f"{name}.npz") as ours, np.load(SHARED / f"{name}.npz") as theirs:
        assert set(ours) <= set(theirs)
        for key in ours:
            np.testing.assert_array_equal(ours[key], theirs[key])
