"""Compute every number in docs/propositions.md, as a tree of JSON values."""

from typing import Any

import numpy as np

from drol_reproduction.propositions.coverage import actor_coverage, coverage, trained_actor
from drol_reproduction.propositions.propositions import (
    ball_scale,
    bounded_tether_bias,
    distance_at_gap,
    exact_kmeans,
    follow_q,
    interval_points,
    routed_rest,
    separated_centres,
    separated_neighbourhoods,
    tether_and_route,
    tether_bias,
    uniform_disc,
)

Numbers = dict[str, Any]

INTERVAL = 0.1  # r of proposition 1
ALPHAS, KINDS, DIMENSION = (0.1, 1.0, 10.0), ("isotropic", "anisotropic", "curved"), 4
STRENGTHS = (0, 0.1, 0.2, 0.5, 1, 2, 5)  # alpha m
OPTIMUM = np.asarray([0.5, 0.35])
GAPS, FINER, STARTS = (0.23, 0.26), (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5), 10  # comparison at equal gaps
DISJOINT = {"2 of 0.5": [0.5] * 2, "0.1, 0.2, 0.3, 0.4": [0.1, 0.2, 0.3, 0.4], "8 of 0.05": [0.05] * 8}
PAIRS_OF_FIFTHS = np.eye(4, 5, dtype=bool) | np.eye(4, 5, 1, dtype=bool)
ACTORS = {  # weights of cloning and of Q, updates
    "before training": (1.0, 0.0, 0),
    "cloning alone": (1.0, 0.0, 2_000),
    "cloning 10 : Q 1": (10.0, 1.0, 2_000),
    "cloning 3 : Q 1": (3.0, 1.0, 2_000),
}


def all_numbers() -> Numbers:
    """Compute every number; about two minutes, half of it for the actors."""
    return cheap_numbers() | {"actors": {name: actor_numbers(*weights) for name, weights in ACTORS.items()}}


def cheap_numbers() -> Numbers:
    """Compute all numbers except those of trained actors; this takes seconds."""
    return {
        "neighbourhoods": neighbourhood_numbers(),
        "tether": {
            f"{objective}, d = {dimension}": tether_and_route(objective, dimension, seed=dimension)
            for objective in ("equation", "released")
            for dimension in (2, 8)
        },
        "strengths": [strength_numbers(strength) for strength in STRENGTHS],
        "equal_gap": equal_gap_numbers(),
        "bias": [{"alpha": alpha} | bias_numbers(alpha) for alpha in ALPHAS],
        "bounded_bias": [{"alpha": alpha} | bounded_numbers(alpha) for alpha in ALPHAS],
        "coverage": [
            *({"case": name} | coverage_row(p, draws) for name, p in DISJOINT.items() for draws in (4, 16, 64)),
            *({"case": "4 of 0.4 that overlap"} | coverage_row([0.2] * 5, k, PAIRS_OF_FIFTHS) for k in (4, 16, 64)),
        ],
        "ball": [{"dimension": dimension} | ball_scale(dimension) for dimension in (2, 5, 8, 21)],
    }


def neighbourhood_numbers() -> Numbers:
    """Return the numbers of the exact minimiser for two to five intervals in three random layouts each."""
    rows = []
    for count in (2, 3, 4, 5):
        layouts = [separated_centres(count, INTERVAL, seed) for seed in range(3)]
        found = [separated_neighbourhoods(centres, INTERVAL) for centres in layouts]
        distances = [np.abs(one["prototypes"] - at).max() for one, at in zip(found, layouts, strict=True)]
        rows.append(
            {
                "intervals": count,
                "prototypes_inside": sorted({number for one in found for number in one["prototypes_inside"]}),
                "farthest_from_centre": float(max(distances)),
                "cost": span([one["cost"] / (INTERVAL**2 / 3) for one in found]),
                "one_fewer": span([one["one_fewer"] / (INTERVAL**2 / 3) for one in found]),
            }
        )
    drawn = separated_neighbourhoods(np.asarray([0.0, 0.55, 1.4, 1.9]), INTERVAL)  # as in the figure
    nearly = [separated_centres(count, INTERVAL, seed, 2.0) for count in (2, 5) for seed in (0, 1)]
    touching = [separated_neighbourhoods(centres, INTERVAL) for centres in nearly]
    parts = {q: exact_kmeans(interval_points(np.zeros(1), INTERVAL, 240), q)[0] for q in (1, 2, 3, 6)}
    return {
        "rows": rows,
        "inside_when_nearly_touching": sorted({number for one in touching for number in one["prototypes_inside"]}),
        "parts_of_one_interval": max(abs(cost / (INTERVAL**2 / (3 * q**2)) - 1) for q, cost in parts.items()),
        "collapsed": drawn["collapsed"] / (INTERVAL**2 / 3),
        "served_from_outside": float(drawn["served_from_outside"]) / (INTERVAL**2 / 3),
    }


def strength_numbers(strength: float) -> Numbers:
    """Return the numbers of tethered, frozen and routed points at rest, without the points."""
    found = follow_q(strength, OPTIMUM, uniform_disc(600, 0), uniform_disc(16, 1))
    return {"strength": strength} | {name: value for name, value in found.items() if isinstance(value, float)}


def equal_gap_numbers() -> list[Numbers]:
    """Return the mean distance to the optimum over several starts, at equal gaps to the data.

    A start counts only if its points come that near to the data; the number of counted starts is returned, too.
    """
    data, curves = uniform_disc(600, 0), []
    for seed in range(1, STARTS + 1):
        start = uniform_disc(16, seed)
        centres = routed_rest(0.0, OPTIMUM, data, start)
        curves.append([follow_q(strength, OPTIMUM, data, start, centres) for strength in FINER])
    rows = []
    for gap in GAPS:
        row: Numbers = {"gap": gap}
        for name in ("tethered", "frozen", "routed"):
            found = [distance_at_gap(gap, curve, name) for curve in curves]
            known = [value for value in found if not np.isnan(value)]
            row |= {name: float(np.mean(known)), f"{name}_starts": len(known)}
        rows.append(row)
    return rows


def bias_numbers(alpha: float) -> Numbers:
    """Return the shares of five random targets for each kind of Q, and the least slope at x_Q."""
    found = {kind: [tether_bias(alpha, DIMENSION, kind, seed) for seed in range(5)] for kind in KINDS}
    return {
        "bound": found["isotropic"][0]["bound"],
        "shares": {kind: span([one["share"] for one in each]) for kind, each in found.items()},
        "least_slope_at_optimum": min(one["slope_at_optimum"] for each in found.values() for one in each),
    }


def bounded_numbers(alpha: float) -> Numbers:
    """Return the numbers of proposition 3 in 50 random boxes for each anisotropic or curved Q."""
    found = [bounded_tether_bias(alpha, DIMENSION, kind, seed) for kind in KINDS[1:] for seed in range(50)]
    on_the_edge = [one for one in found if one["slope_at_minimum"] > 1e-6]
    return {
        "cases": len(found),
        "on_the_edge": len(on_the_edge),
        "largest_slope_at_minimum": max(one["slope_at_minimum"] for one in on_the_edge),
        "least_rise_to_optimum": min(one["rise_to_optimum"] for one in on_the_edge),
        "largest_share_of_bound": max(one["share"] / one["bound"] for one in found),
    }


def coverage_row(probabilities: list[float], draws: int, members: np.ndarray | None = None) -> Numbers:
    """Return K and the probability that K draws reach all neighbourhoods."""
    return {"draws": draws} | coverage(probabilities, draws, members)


def actor_numbers(bc_weight: float, q_weight: float, updates: int) -> Numbers:
    """Return the coverage of K draws of a trained actor."""
    return actor_coverage(*trained_actor(bc_weight, q_weight, updates), (16, 64))


def span(values: list[float]) -> list[float]:
    """Return the smallest and the largest value."""
    return [float(min(values)), float(max(values))]
