"""The figure of `drol bench`: updates a second of every method, and run times beside published ones."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from drol.reports.figure_style import INK, MUTED, REACHED, SERIES, styled

HERE, PUBLISHED = "one seed on this machine (median and quartiles of the rounds)", "published, on unstated hardware"


@styled
def bench_figure(results: Mapping[str, Any], training: Mapping[str, float], action: Mapping[str, float]) -> Figure:
    """Draw updates a second, and milliseconds of a training step and of an action beside published ones.

    Args:
        results: What `bench` returned, the part "speed" included.
        training: Published milliseconds of a training step, by method.
        action: Published milliseconds of an action, by method.
    """
    methods, rows = results["methods"], {**results["methods"], **results["ladder"]}
    figure = Figure(figsize=(11.5, 3.8), layout="constrained")
    updates_axes, training_axes, action_axes = figure.subplots(1, 3, width_ratios=(1.25, 1.35, 0.9))
    draw_updates(updates_axes, methods)
    steps = {name: row["update_milliseconds"] for name, row in rows.items()}
    draw_times(training_axes, steps, training, "one training step")
    actions = {name: row["action_milliseconds"] for name, row in methods.items()}
    draw_times(action_axes, actions, action, "one action")
    figure.legend(
        handles=[
            Patch(color=REACHED, label=HERE),
            Patch(color=SERIES[2], label=f"{results['seeds']} seeds at once, all of them together"),
            Patch(fill=False, edgecolor=SERIES[1], hatch="///", label=PUBLISHED),
        ],
        loc="outside lower center",
        ncols=3,
        fontsize=8.5,
    )
    machine = f"{results['device']}, jax {results['jax']}, {results['preset']} networks, {results['rounds']} rounds"
    figure.suptitle(machine, fontsize=8.5, color=MUTED)
    return figure


def draw_updates(axes: Axes, methods: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw a bar for each method, one seed alone and all seeds at once."""
    places = np.arange(len(methods))
    axes.barh(places - 0.2, [row["updates_per_second"] for row in methods.values()], 0.36, color=REACHED)
    axes.barh(places + 0.2, [row["seeds_updates_per_second"] for row in methods.values()], 0.36, color=SERIES[2])
    axes.set_yticks(places, [*methods], color=INK)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(title="updates a second", xlim=(0, None))


def draw_times(axes: Axes, measured: Mapping[str, Sequence[float]], published: Mapping[str, float], title: str) -> None:
    """Draw our bars filled, with the quartiles of the rounds, and the published ones hollow, in their order."""
    axes.set(title=title, ylabel="milliseconds")
    names = [name for name in published if name in measured]
    if not names:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set(xticks=[], yticks=[])
        return
    places, middles = np.arange(len(names)), np.asarray([statistics.median(measured[name]) for name in names])
    low, high = np.transpose([np.percentile(measured[name], (25, 75)) for name in names])
    axes.bar(places - 0.2, middles, 0.36, yerr=(middles - low, high - middles), color=REACHED, ecolor=INK, capsize=2.5)
    others = [published[name] for name in names]
    axes.bar(places + 0.2, others, 0.36, fill=False, edgecolor=SERIES[1], hatch="///", lw=1.2)
    axes.set_xticks(places, [name.replace(" ", "\n") for name in names], color=INK)
    axes.grid(axis="x", visible=False)
    # Hardware differs by more than methods do, so that only a logarithmic axis shows both.
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
