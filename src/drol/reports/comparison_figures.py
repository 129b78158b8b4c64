"""Figures of a comparison. Each function returns a matplotlib figure."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drol.reports.figure_style import INK, MUTED, SERIES, styled
from drol.results.compare import Comparison
from drol.results.statistical_tests import performance_profile

STYLES = ("-", "--", ":", "-.")
THRESHOLDS = 201
LARGEST = 1e50  # larger scores are clipped: matplotlib and variances overflow near the largest float


def look_of(comparison: Comparison, label: str) -> dict[str, Any]:
    """Return the colour and line style of a label, the same in all figures."""
    index = comparison.labels.index(label)
    return {"color": SERIES[index % len(SERIES)], "ls": STYLES[index // len(SERIES) % len(STYLES)]}


@styled
def improvement_figure(comparison: Comparison) -> Figure:
    """Draw the probability that a run of each label is better than a run of the baseline, with its interval."""
    shown = [each for each in comparison.overall if each.improvement is not None]
    figure = Figure(figsize=(6.4, 0.9 + 0.34 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for place, each in enumerate(shown):
        chance, interval = each.improvement or 0.0, each.improvement_interval
        color = look_of(comparison, each.label)["color"]
        if interval:
            axes.plot([interval.low, interval.high], [place, place], color=color, lw=7, alpha=0.35)
        axes.plot([chance], [place], "o", color=color, ms=6)
    axes.axvline(0.5, color=MUTED, lw=1)
    axes.set_yticks(range(len(shown)), [each.label for each in shown], color=INK)
    axes.set(
        xlim=(-0.02, 1.02),
        ylim=(len(shown) - 0.4, -0.6),
        xlabel=f"P(a run is better than a run of {comparison.baseline})",
    )
    axes.grid(axis="y", visible=False)
    return figure


@styled
def profile_figure(comparison: Comparison) -> Figure:
    """Draw the share of runs with a score above each threshold; all tasks have the same weight."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    scores = np.concatenate([each for label in comparison.overall for each in label.scores.values()])
    scores = np.clip(scores, -LARGEST, LARGEST)
    percent = "%" in comparison.groups[0].score_name
    low, high = (0.0, 100.0) if percent else (float(scores.min()), float(scores.max()))
    thresholds = np.linspace(low, high, THRESHOLDS)
    for each in comparison.overall:
        shares = performance_profile(list(each.scores.values()), thresholds)
        axes.plot(
            thresholds, shares, **look_of(comparison, each.label), lw=1.8, label=each.label, drawstyle="steps-post"
        )
    axes.set(xlabel=comparison.groups[0].score_name, ylabel="share of runs above this score", ylim=(-0.03, 1.03))
    axes.legend(fontsize=8)
    return figure
