"""What DROL's stored numbers say beyond its losses: routing and the diagnostics."""

import numpy as np
import pytest
from reference.loading import VARIANTS, load

from drol.algorithms.parts import clip
from drol.algorithms.routing import candidate_diagnostics


@pytest.fixture(params=[name for name in VARIANTS if name.startswith("drol")])
def problem(request):
    return load(request.param)


def test_candidates_winner_and_target_agree(problem):
    algorithm, state, batch, reference = problem.algorithm, problem.state, problem.batch, problem.reference
    (draws,) = problem.draws[0]
    actor = state.actor.network
    candidates = clip(actor.candidates(batch.observation, draws.latent))
    np.testing.assert_allclose(candidates, reference["aux/candidate"], atol=1e-5)
    winner = np.take_along_axis(np.asarray(draws.latent), reference["aux/winner"][:, None, None], 1)[:, 0]
    np.testing.assert_array_equal(algorithm.route(actor, batch, draws.latent), winner)
    target = algorithm.bellman_target(state.target_critic, actor, batch, draws.next_latent)
    np.testing.assert_allclose(target, reference["aux/target"], rtol=1e-5, atol=1e-5)


def test_diagnostics_agree(problem):
    (draws,) = problem.draws[0]
    candidates = clip(problem.state.actor.network.candidates(problem.batch.observation, draws.latent))
    metrics = candidate_diagnostics(candidates, problem.batch.action)
    expected = problem.metrics(1)
    for ours, theirs in {
        "routed_bc_loss": "min_d2",
        "candidate_divergence": "candidate_divergence",
        "candidate_squared_distance": "candidate_pairwise_dist2",
        "candidate_distance": "candidate_pairwise_dist",
        "winner_entropy": "winner_entropy",
        "winner_largest_share": "winner_max_share",
    }.items():
        assert metrics[ours] == pytest.approx(expected[theirs], rel=1e-5, abs=1e-5), ours
