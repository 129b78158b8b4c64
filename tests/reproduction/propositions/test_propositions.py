import math

import numpy as np
import pytest

from drol_reproduction.propositions.propositions import (
    TetherProblem,
    ball_scale,
    bounded_tether_bias,
    distance_at_gap,
    exact_kmeans,
    follow_q,
    interval_points,
    projected_minimum,
    separated_centres,
    separated_neighbourhoods,
    tether_and_route,
    tether_bias,
    uniform_disc,
)

RADIUS = 0.1


def brute_force_kmeans(points, count):
    """The cheapest of all ways to cut sorted points into runs."""
    if count == 1:
        return len(points) * points.var()
    return min(
        brute_force_kmeans(points[:cut], count - 1) + (len(points) - cut) * points[cut:].var()
        for cut in range(count - 1, len(points))
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_dynamic_programming_finds_the_minimum_of_all_ways_to_cut(count):
    points = np.sort(np.random.default_rng(count).normal(size=11))
    cost, prototypes = exact_kmeans(points, count)
    assert cost == pytest.approx(brute_force_kmeans(points, count) / 11, abs=1e-12)
    assert cost == pytest.approx(np.square(points[:, None] - prototypes).min(1).mean(), abs=1e-12)


@pytest.mark.parametrize("least_gap", [4.0, 2.0])  # the statement asks for 4 radii; it was seen to hold from 2
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_one_prototype_for_each_separated_interval(count, least_gap):
    for seed in range(3):
        centres = separated_centres(count, RADIUS, seed, least_gap)
        found = separated_neighbourhoods(centres, RADIUS)
        assert found["prototypes_inside"] == [1] * count
        np.testing.assert_allclose(found["prototypes"], centres, atol=1e-9)
        assert found["cost"] == pytest.approx(found["one_interval"], rel=1e-9)
        assert found["one_interval"] == pytest.approx(RADIUS**2 / 3, rel=1e-3)


@pytest.mark.parametrize("prototypes", [1, 2, 3, 6])
def test_distortion_of_one_interval_falls_with_the_square_of_its_prototypes(prototypes):
    cost, _ = exact_kmeans(interval_points(np.zeros(1), RADIUS, 240), prototypes)
    assert cost == pytest.approx(RADIUS**2 / (3 * prototypes**2), rel=1e-3)


def test_a_collapsed_layout_costs_more_though_lloyd_may_stop_in_it():
    found = separated_neighbourhoods(np.asarray([0.0, 0.55, 1.4, 1.9]), RADIUS)
    assert found["collapsed"] > 10 * found["cost"]


def test_the_printed_proof_does_not_bound_an_interval_without_a_prototype():
    # It claims 4/3 r^2; two prototypes just outside the ends serve the interval for r^2/3.
    found = separated_neighbourhoods(separated_centres(2, RADIUS, 0), RADIUS)
    assert found["served_from_outside"] == pytest.approx(RADIUS**2 / 3, rel=1e-6)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_prototype_for_an_interval_without_one_saves_what_our_proof_says(count):
    for seed in range(3):
        found = separated_neighbourhoods(separated_centres(count, RADIUS, seed), RADIUS)
        assert found["one_fewer"] - found["cost"] >= RADIUS**2 / count


@pytest.mark.parametrize("dimension", [2, 8])
@pytest.mark.parametrize("objective", ["equation", "released"])
def test_a_tether_stays_and_a_routed_pull_changes_hands(objective, dimension):
    found = tether_and_route(objective, dimension, seed=dimension)
    assert found["tether_error"] < 1e-5
    assert found["winner_error"] < 1e-5
    assert found["largest_loser_gradient"] == 0
    assert found["pulled_before"] == [found["winner"]]
    assert found["pulled_after"] == [found["runner_up"]]
    if objective == "released":  # which clips candidates before it takes a distance
        assert found["gradient_outside_the_box"] == 0
    else:
        assert found["gradient_outside_the_box"] > 0.1


def test_frozen_points_are_tethered_to_the_centres_of_k_means():
    optimum, data, start = np.asarray([0.5, 0.35]), uniform_disc(200, 0), uniform_disc(8, 1)
    resting = follow_q(0.0, optimum, data, start)
    centres = resting["routed"]
    owner = np.square(data[:, None] - centres).sum(-1).argmin(1)
    means = np.stack([data[owner == k].mean(0) for k in range(8)])
    np.testing.assert_allclose(centres, means, atol=1e-9)
    np.testing.assert_array_equal(resting["frozen"], centres)
    pulled = follow_q(1.0, optimum, data, start)
    np.testing.assert_allclose(pulled["frozen"], (2 * centres + optimum) / 3)
    np.testing.assert_array_equal(follow_q(1.0, optimum, data, start, centres)["frozen"], pulled["frozen"])


def test_the_distance_at_a_gap_is_interpolated_at_the_largest_strength_that_keeps_it():
    rows = [{"routed_gap": gap, "routed_distance": d} for gap, d in ((0.3, 0.9), (0.2, 0.8), (0.2, 0.6), (0.4, 0.4))]
    assert distance_at_gap(0.3, rows, "routed") == pytest.approx(0.5)
    assert np.isnan(distance_at_gap(0.1, rows, "routed"))
    assert np.isnan(distance_at_gap(0.5, rows, "routed"))


def test_free_routed_candidates_are_nearer_to_the_optimum_at_the_same_reach_of_the_data():
    data, start = uniform_disc(600, 0), uniform_disc(16, 1)
    found = {strength: follow_q(strength, np.asarray([0.5, 0.35]), data, start) for strength in (0.5, 1.0)}
    assert found[0.5]["routed_gap"] < found[1.0]["tethered_gap"]
    assert found[0.5]["routed_distance"] < 0.8 * found[1.0]["tethered_distance"]


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_bias_of_a_tether_meets_its_bound_only_where_curvature_is_equal(alpha):
    for seed in range(5):
        isotropic, anisotropic, curved = (
            tether_bias(alpha, 4, kind, seed) for kind in ("isotropic", "anisotropic", "curved")
        )
        assert isotropic["share"] == pytest.approx(2 / (2 + alpha), rel=1e-9)
        assert 0 < anisotropic["share"] < 0.999 * anisotropic["bound"]
        assert 0 < curved["share"] < 0.999 * curved["bound"]
        assert curved["slope_at_optimum"] > 0.1
        assert curved["slope_if_target_is_optimum"] == 0


def test_in_a_bounded_set_the_bound_holds_though_the_gradient_at_the_minimum_is_not_zero():
    # The printed proof has a gradient of 0 there; ours needs only that the way to x_Q does not go down.
    found = [bounded_tether_bias(1.0, 4, kind, seed) for kind in ("anisotropic", "curved") for seed in range(20)]
    on_the_edge = [each for each in found if each["slope_at_minimum"] > 1e-3]
    assert 10 < len(on_the_edge) < 40
    for each in found:
        assert each["still_moving"] < 1e-12
        assert each["share"] <= each["bound"]
        assert each["rise_to_optimum"] >= -1e-12


def test_a_minimiser_on_the_edge_of_a_slab_is_the_one_that_was_worked_out_by_hand():
    # -Q = x'Ax/2 with eigenvalues 1 and 10 at 45 degrees, a = (1, 0), alpha 1, |y| <= 0.1:
    # 7.5 x - 4.5 y = 2 gives x = 0.3267, and the free minimiser (0.417, 0.25) is outside.
    problem = TetherProblem(1.0, 2, "anisotropic", np.random.default_rng(0))
    problem.matrix, problem.target = np.asarray([[5.5, -4.5], [-4.5, 5.5]]), np.asarray([1.0, 0.0])
    np.testing.assert_allclose(problem.gradient(np.asarray([5 / 12, 1 / 4])), 0, atol=1e-12)
    minimum = projected_minimum(problem, np.asarray([-9.0, -0.1]), np.asarray([9.0, 0.1]))
    np.testing.assert_allclose(minimum, [2.45 / 7.5, 0.1], atol=1e-12)
    np.testing.assert_allclose(problem.gradient(minimum), [0, -0.72], atol=1e-12)
    assert problem.share(minimum) == pytest.approx(0.342, abs=5e-4)


@pytest.mark.parametrize(("dimension", "expected"), [(2, 1.0), (5, 3.5714), (8, 6.4), (21, 19.1739)])
def test_latents_have_the_scale_of_the_action_space(dimension, expected):
    draws = 100_000
    found = ball_scale(dimension, draws)
    assert found["expected"] == pytest.approx(expected, abs=1e-4)
    assert found["mean_square"] == pytest.approx(expected, rel=0.005)
    assert found["largest"] <= 1 + 1e-6  # rounding may put a draw outside
    assert found["kolmogorov_smirnov"] < 1.63 / math.sqrt(draws)  # passed by 99 of 100 uniform samples
    assert found["mean_direction"] < 4 / math.sqrt(draws)
