"""The figure of `drol bench`: updates a second of every method, and the paper's bars of run times beside its own."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from drol.experiments.report.run_figures import INK, MUTED, REACHED, SERIES

# The bars of the paper's figure of run times, read off it (+-2%); it does not say on what hardware. Milliseconds.
PUBLISHED_TRAINING = {
    "sorl": 8.6,
    "fql": 5.0,
    "deflow": 4.8,
    "drol K=1": 4.7,
    "drol K=4": 3.5,
    "drol K=8": 4.8,
    "drol K=16": 4.9,
}
PUBLISHED_INFERENCE = {"sorl": 0.53, "fql": 0.17, "deflow": 0.54, "drol": 0.16}
HERE, PUBLISHED = "one seed on this machine (median and quartiles of the rounds)", "published, on unstated hardware"


def bench_figure(results: Mapping[str, Any]) -> Figure:
    """Updates a second; milliseconds of a training step and of an action, for the methods of the paper's panel."""
    methods = results["methods"]
    training = {
        name: row["update_milliseconds"]
        for name, row in {**methods, **results["ladder"]}.items()
        if name in PUBLISHED_TRAINING
    }
    inference = {name: methods[name]["action_milliseconds"] for name in PUBLISHED_INFERENCE if name in methods}
    figure = Figure(figsize=(11.5, 3.8), layout="constrained")
    updates_axes, training_axes, inference_axes = figure.subplots(1, 3, width_ratios=(1.25, 1.35, 0.9))
    draw_updates(updates_axes, methods)
    draw_times(training_axes, training, PUBLISHED_TRAINING, "one training step")
    draw_times(inference_axes, inference, PUBLISHED_INFERENCE, "one action")
    figure.legend(
        handles=[
            Patch(color=REACHED, label=HERE),
            Patch(color=SERIES[1], label=f"{results['seeds']} seeds at once, all of them together"),
            Patch(fill=False, edgecolor=SERIES[2], hatch="///", label=PUBLISHED),
        ],
        loc="outside lower center",
        ncols=3,
        fontsize=8.5,
    )
    machine = f"{results['device']}, jax {results['jax']}, {results['preset']} networks, {results['rounds']} rounds"
    figure.suptitle(machine, fontsize=8.5, color=MUTED)
    return figure


def draw_updates(axes: Axes, methods: Mapping[str, Mapping[str, Any]]) -> None:
    """A bar for each method, one seed alone and all seeds at once."""
    places = range(len(methods))
    alone = [row["updates_per_second"] for row in methods.values()]
    together = [row["seeds_updates_per_second"] for row in methods.values()]
    axes.barh([place - 0.2 for place in places], alone, 0.36, color=REACHED)
    axes.barh([place + 0.2 for place in places], together, 0.36, color=SERIES[1])
    axes.set_yticks([*places], [*methods], color=INK)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(title="updates a second", xlim=(0, None))


def draw_times(axes: Axes, measured: Mapping[str, Sequence[float]], published: Mapping[str, float], title: str) -> None:
    """Our bars filled, with the quartiles of the rounds; the published ones hollow, in the order of the paper."""
    axes.set(title=title, ylabel="milliseconds")
    if not measured:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set(xticks=[], yticks=[])
        return
    names = [name for name in published if name in measured]
    middles = [statistics.median(measured[name]) for name in names]
    quartiles = [quartiles_of(measured[name]) for name in names]
    errors = [
        [middle - low for middle, (low, _) in zip(middles, quartiles, strict=True)],
        [high - middle for middle, (_, high) in zip(middles, quartiles, strict=True)],
    ]
    places = range(len(names))
    ours = [place - 0.2 for place in places]
    axes.bar(ours, middles, 0.36, yerr=errors, color=REACHED, ecolor=INK, capsize=2.5)
    others = [published[name] for name in names]
    beside = [place + 0.2 for place in places]
    axes.bar(beside, others, 0.36, fill=False, edgecolor=SERIES[2], hatch="///", lw=1.2)
    axes.set_xticks([*places], [name.replace(" ", "\n") for name in names], color=INK)
    axes.grid(axis="x", visible=False)
    # Hardware differs by more than methods do, so that only a logarithmic axis shows both.
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def quartiles_of(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
