"""The time of one update for datasets of 10^4 to 10^7 transitions in memory: python benchmarks/growth.py

Updates only gather the rows of their batch, so the size of the dataset should not matter. All sizes are timed in turn.
"""

import argparse
import json
import statistics
from pathlib import Path

from matplotlib.figure import Figure

from drol.algorithms.drol import DROL
from drol.experiments.bench.timers import median_ratio, random_dataset, time_in_turn, update_timer
from drol.experiments.report.style import MUTED, REACHED, save_figure, styled

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
NETWORKS = {"paper": {}, "laptop": DROL.presets["laptop"]}


@styled
def growth_figure(sizes: list[int], results: dict[str, dict]) -> Figure:
    """Draw the milliseconds of an update over the size of the dataset, with the quartiles of the rounds."""
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    all_axes = figure.subplots(1, len(results))
    for axes, (name, each) in zip(all_axes, results.items(), strict=True):
        middle = each["milliseconds"]
        spread = [[m - low for m, low in zip(middle, each["lower_quartile"], strict=True)],
                  [high - m for m, high in zip(middle, each["upper_quartile"], strict=True)]]  # fmt: skip
        axes.errorbar(sizes, middle, spread, color=REACHED, ecolor=MUTED, marker="o", capsize=3, lw=1.6)
        axes.set(xscale="log", ylim=(0, 1.25 * max(each["upper_quartile"])), xlabel="transitions in memory")
        axes.set(title=f"{name} networks", ylabel="ms an update")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="(default: 15)")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--figure", type=Path, help="draw them to this file")
    parsed = parser.parse_args()
    datasets = {size: random_dataset(size + 1) for size in parsed.sizes}
    results = {}
    for name, settings in NETWORKS.items():
        algorithm = DROL(**settings)
        timers = {f"{size:,} transitions": update_timer(algorithm, each) for size, each in datasets.items()}
        seconds = list(time_in_turn(timers, parsed.rounds).values())
        quartiles = [statistics.quantiles([1e3 * second for second in each], n=4) for each in seconds]
        results[name] = {
            "milliseconds": [middle for _, middle, _ in quartiles],
            "lower_quartile": [low for low, _, _ in quartiles],
            "upper_quartile": [high for _, _, high in quartiles],
            "over_smallest": [median_ratio(each, seconds[0]) for each in seconds],
        }
        for size, middle, ratio in zip(
            parsed.sizes, results[name]["milliseconds"], results[name]["over_smallest"], strict=True
        ):
            print(f"{name:7s} {size:>12,} transitions: {middle:6.2f} ms an update, {ratio:.2f} of the smallest")
    if parsed.json:
        parsed.json.write_text(json.dumps({"transitions": parsed.sizes, **results}, indent=2) + "\n")
    if parsed.figure:
        save_figure(growth_figure(parsed.sizes, results), parsed.figure, dpi=120)


if __name__ == "__main__":
    main()
