"""Draw the figures of the propositions from computed numbers. Each function returns a matplotlib figure."""

import math
from collections.abc import Callable

import jax
import numpy as np
from matplotlib.figure import Figure

from drol.algorithms.parts import uniform_in_ball
from drol.reports.figure_style import GOAL, GRID, INK, MISSED, MUTED, REACHED, SERIES, styled
from drol_reproduction.propositions.coverage import coverage
from drol_reproduction.propositions.propositions import (
    exact_kmeans,
    follow_q,
    interval_points,
    lloyd,
    separated_neighbourhoods,
    tether_bias,
    uniform_disc,
)


@styled
def neighbourhoods_figure() -> Figure:
    """Draw the exact minimiser beside a collapsed local minimum, and the minimum for every number of prototypes."""
    radius, centres = 0.1, np.asarray([0.0, 0.55, 1.4, 1.9])
    points = interval_points(centres, radius, 60)
    collapsed_start = np.asarray([-0.05, 0.05, 0.55, 1.4])
    layouts = [
        ("exact minimum", *exact_kmeans(points, 4)),
        ("Lloyd, from a collapsed start", *lloyd(points, collapsed_start)),
    ]
    unit = separated_neighbourhoods(centres, radius)["one_interval"]
    figure = Figure(figsize=(8.6, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    for height, (name, cost, prototypes), colour in zip((1, 0), layouts, (REACHED, MISSED), strict=True):
        for centre in centres:
            left.plot([centre - radius, centre + radius], [height, height], color=GRID, lw=11, solid_capstyle="butt")
        left.plot(prototypes, np.full(4, height), "o", color=colour, ms=7, mec="white")
        left.text(-0.1, height + 0.25, f"{name}: J = {cost / unit:.2f} × r²/3", color=colour, fontsize=9)
    left.set(ylim=(-0.5, 1.7), yticks=[], xlabel="action", title="4 intervals, 4 prototypes")
    left.spines.left.set_visible(False)
    left.grid(False)
    numbers = np.arange(1, 9)
    right.semilogy(numbers, [exact_kmeans(points, int(k))[0] / unit for k in numbers], "o-", color=REACHED, ms=4)
    right.axvline(4, color=MUTED, ls=":", lw=1)
    right.axhline(1, color=MUTED, ls=":", lw=1)
    right.annotate("K = M", (4, 1), xytext=(6, 8), textcoords="offset points", color=INK)
    right.set(xlabel="prototypes K", title="exact minimum of J, in units of r²/3", xticks=numbers)
    return figure


@styled
def tether_figure() -> Figure:
    """Draw free candidates on a disc of data, tethered and routed, and the losses of both as Q grows stronger."""
    optimum, data, start = np.asarray([0.5, 0.35]), uniform_disc(600, 0), uniform_disc(16, 1)
    figure = Figure(figsize=(9.6, 3.3), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    result = follow_q(0.5, optimum, data, start)
    winner = np.square(data[:, None] - result["routed"]).sum(-1).argmin(1)
    panels = (
        ("tethered", "pointwise: a teacher for each sample", MISSED, start, np.arange(16)),
        ("routed", "routed: data to its nearest candidate", REACHED, data[:300], winner[:300]),
    )
    for panel, (name, title, colour, anchors, owner) in zip(axes[:2], panels, strict=True):
        panel.scatter(*data.T, s=3, color=MUTED, alpha=0.35, lw=0)
        points = result[name]
        for anchor, index in zip(anchors, owner, strict=True):
            panel.plot(*np.stack([anchor, points[index]]).T, color=colour, lw=0.5, alpha=0.55)
        if name == "tethered":
            panel.scatter(*start.T, s=14, facecolor="white", edgecolor=colour, lw=0.8, zorder=3)
        panel.scatter(*points.T, s=30, color=colour, edgecolor="white", lw=0.8, zorder=4)
        panel.scatter(*optimum, marker="*", s=130, color=GOAL, edgecolor=INK, lw=0.7, zorder=5)
        distance, gap = result[f"{name}_distance"], result[f"{name}_gap"]
        text = f"mean distance to the optimum {distance:.2f}\nfrom data to nearest candidate {gap:.2f}"
        panel.set(title=title, aspect="equal", xticks=[], yticks=[], xlabel=text)
        panel.grid(False)
        panel.spines[:].set_visible(False)
    strengths = (0, 0.1, 0.2, 0.5, 1, 2, 5)
    rows = [follow_q(strength, optimum, data, start) for strength in strengths]
    for name, colour in (("tethered", MISSED), ("frozen", GOAL), ("routed", REACHED)):
        gap, distance = ([row[f"{name}_{what}"] for row in rows] for what in ("gap", "distance"))
        axes[2].plot(gap, distance, "o-", color=colour, ms=4, label={"frozen": "tethered to centres"}.get(name, name))
        for strength, x, y in zip(strengths, gap, distance, strict=True):
            if strength in (0, 0.5, 2) and name != "frozen":
                axes[2].annotate(
                    f"{strength:g}", (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8, color=colour
                )
    axes[2].set(
        xlabel="mean distance from data to nearest candidate",
        ylabel="mean distance to the optimum",
        title="numbers at dots: αm",
    )
    axes[2].legend()
    return figure


@styled
def bias_figure() -> Figure:
    """Draw the distance of a tethered sample at rest from the optimum, against the bound."""
    figure = Figure(figsize=(5.4, 3.0), layout="constrained")
    axes = figure.subplots()
    alphas = np.geomspace(0.03, 100, 40)
    axes.semilogx(alphas, 2 / (2 + alphas), color=INK, lw=1.8, label="bound 2 / (2 + αm)")
    kinds = (
        ("isotropic", SERIES[3], "isotropic quadratic"),
        ("anisotropic", SERIES[2], "anisotropic quadratic"),
        ("curved", SERIES[1], "not quadratic"),
    )
    for kind, colour, label in kinds:
        chosen = alphas[::4] if kind == "isotropic" else np.tile(alphas[::4], 6)
        shares = [tether_bias(alpha, 4, kind, seed=index)["share"] for index, alpha in enumerate(chosen)]
        axes.plot(chosen, shares, "o", color=colour, ms=3.6, alpha=0.85, mew=0, label=label)
    axes.set(xlabel="αm, weight of Q times its least curvature", ylabel="|x_fix - x_Q| / |a - x_Q|", ylim=(0, 1.02))
    axes.legend()
    return figure


@styled
def coverage_figure() -> Figure:
    """Draw the probability that K candidates reach every neighbourhood: counted, exact, and the two bounds."""
    figure = Figure(figsize=(9.2, 2.8), layout="constrained")
    numbers = np.unique(np.geomspace(1, 128, 22).round().astype(int))
    cases = (
        ("2 of probability 0.5", [0.5] * 2),
        ("4 of 0.1, 0.2, 0.3, 0.4", [0.1, 0.2, 0.3, 0.4]),
        ("8 of 0.05", [0.05] * 8),
    )
    for axes, (title, probabilities) in zip(figure.subplots(1, 3, sharey=True), cases, strict=True):
        rows = [coverage(probabilities, int(k)) for k in numbers]
        for name, style, colour, label in (
            ("exact", "-", REACHED, "exact"),
            ("union_bound", "--", SERIES[2], "1 - Σ (1 - p)^K"),
            ("exponential_bound", ":", MISSED, "1 - M exp(-K p_min)"),
            ("counted", "o", INK, "counted, 20,000 trials"),
        ):
            axes.semilogx(numbers, [row[name] for row in rows], style, color=colour, ms=3, label=label, base=2)
        axes.axvline(16, color=MUTED, lw=0.8, ls=":")
        axes.set(title=title, xlabel="candidates K", ylim=(-0.04, 1.04), xticks=[1, 4, 16, 64])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    figure.axes[0].set_ylabel("P(all are reached)")
    figure.axes[2].legend(fontsize=8, loc="upper left")
    return figure


@styled
def ball_figure() -> Figure:
    """Draw the lengths of DROL's latents with their density, and the variance of a component with d / (d + 2)."""
    figure = Figure(figsize=(8.0, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    dimensions = (2, 5, 8, 21)
    variances = []
    for dimension, colour in zip(dimensions, SERIES, strict=False):
        latent = np.asarray(uniform_in_ball(jax.random.key(0), (100_000, dimension), math.sqrt(dimension)))
        variances.append(latent.var())
        share = np.linalg.norm(latent, axis=1) / math.sqrt(dimension)
        grid = np.linspace(0, 1, 200)
        left.hist(share, bins=60, range=(0, 1), density=True, color=colour, alpha=0.3)
        left.plot(grid, dimension * grid ** (dimension - 1), color=colour, lw=1.5, label=f"d = {dimension}")
    left.set(xlabel="|z| / R", title="lengths: drawn, and d r^(d-1) / R^d", yticks=[])
    left.legend()
    grid = np.arange(1, 25)
    right.plot(grid, grid / (grid + 2), color=INK, lw=1.5, label="d / (d + 2)")
    right.plot(dimensions, variances, "o", color=REACHED, label="drawn")
    right.set(xlabel="action size d", title="variance of one component", ylim=(0, 1.02))
    right.legend()
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "1-neighbourhoods": neighbourhoods_figure,
    "2-tether": tether_figure,
    "3-bias": bias_figure,
    "4-coverage": coverage_figure,
    "5-ball": ball_figure,
}
