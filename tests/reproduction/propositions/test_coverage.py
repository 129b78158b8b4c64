import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drol.networks.actors import LatentActor
from drol.transition import Spec
from drol_reproduction.propositions.coverage import RADIUS, actor_coverage, coverage, trained_actor

IN_PAIRS = np.asarray([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], bool)
CASES = {
    "2": ([0.5, 0.5], None),
    "3": ([0.1, 0.2, 0.3], None),
    "8": ([0.05] * 8, None),
    "overlapping": ([0.2] * 5, IN_PAIRS),
}


@pytest.mark.parametrize(("probabilities", "members"), CASES.values(), ids=CASES)
def test_coverage_is_above_its_bounds_and_rises_with_candidates(probabilities, members):
    rows = [coverage(probabilities, draws, members) for draws in (1, 2, 4, 8, 16, 32, 64)]
    for row in rows:
        assert abs(row["counted"] - row["exact"]) < 4 * row["standard_error"]
        assert row["exact"] >= row["union_bound"] - 1e-12
        assert row["union_bound"] >= row["exponential_bound"] - 1e-12
    assert (np.diff([row["exact"] for row in rows]) > -1e-12).all()


def test_the_exact_value_of_overlapping_neighbourhoods_is_that_of_all_sequences_of_draws():
    # Neighbourhoods {0, 1} and {1, 2} of four equal events, one of them outside: two draws reach both in 9 of 16 cases.
    members = np.asarray([[1, 1, 0], [0, 1, 1]], bool)
    found = coverage([1 / 4] * 3, 2, members)
    assert found["exact"] == pytest.approx(9 / 16, abs=1e-12)
    assert found["union_bound"] == pytest.approx(1 - 2 / 4, abs=1e-12)


def linear_actor(scale):
    """An actor whose action is its latent times a number: uniform in a disc of a known radius."""
    actor = LatentActor(jax.random.key(0), Spec((1,), 2), ())
    kernel = jnp.concatenate([jnp.zeros((1, 2)), scale * jnp.eye(2)])
    return eqx.tree_at(lambda actor: actor.network.layers[0].kernel, actor, kernel)


def test_the_probabilities_of_an_actor_are_shares_of_the_area_that_it_reaches():
    centres = np.asarray([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.2]])
    found = actor_coverage(linear_actor(0.5), centres, (4, 16), measured=100_000)
    share = RADIUS**2 / (0.5 * np.sqrt(2)) ** 2  # all three discs are inside the one of radius 0.707
    np.testing.assert_allclose(found["probabilities"], share, atol=0.006)
    assert 0.05 < found["in_more_than_one"] < 1 - found["in_none"]
    for row in found["rows"]:
        assert row["counted"] == pytest.approx(row["exact"], abs=4 * row["standard_error"] + 0.01)
        assert row["counted"] > row["union_bound"] - 4 * row["standard_error"]


def test_a_trained_actor_gives_candidates_and_discs_about_actions_of_both_modes():
    actor, centres = trained_actor(1.0, 0.0, 40)
    assert np.sign(centres[:, 0]).tolist() == [1, -1] * 4
    assert 0 <= actor_coverage(actor, centres, (4,), measured=1_000, trials=100)["in_none"] < 1
