"""Figure 3: candidate distance, centroid divergence and routed BC loss against K, and run times."""

import csv
import io
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from drol.algorithms import algorithm_name
from drol.errors import InputError
from drol.planning.planned_run import CANDIDATES
from drol.reports.figure_style import INK, MISSED, MUTED, REACHED, SERIES, styled, thousands
from drol.results.collect import DIAGNOSTICS, changed_settings, find_runs
from drol.results.merge import consistent
from drol.results.result import Result
from drol.runs.run import open_run
from drol.storage import write_whole
from drol_reproduction.experiments import short_name
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.protocol import setting_differences, words
from drol_reproduction.published import READ_OFF, candidate_curves, published_updates
from drol_reproduction.published.times import ACTION, TRAINING_STEP

FIGURES = ("candidate_distance", "routed_bc_loss", "candidate_divergence")
FLOOR = 1e-12  # the value shown for the logarithm of a divergence of 0 (K = 1)


class Diagnosed(NamedTuple):
    """The diagnostics of one seed of DROL after some updates."""

    task: str
    settings: str  # the settings that are not defaults, without K, as sorted JSON
    data: str  # the fingerprint of the dataset
    candidates: int
    seed: int
    step: int
    figures: Mapping[str, float]


class Sweep(NamedTuple):
    """The diagnostics of one task against K, all after the same number of updates."""

    step: int
    settings: str
    values: dict[str, dict[int, list[float]]]  # name of the metric -> K -> value of each seed


def diagnosed_results(results: Iterable[Result]) -> list[Diagnosed]:
    """Return the diagnostics in results of DROL."""
    return [
        Diagnosed(
            row.task, without_candidates(row.settings), row.dataset_fingerprint, row.setting(CANDIDATES), row.seed,
            row.step, row.figures,
        )
        for row in consistent(results)
        if row.method == "drol" and row.evaluation == "training"
    ]  # fmt: skip


def diagnosed_runs(paths: Iterable[Path]) -> list[Diagnosed]:
    """Return the diagnostics in the metrics of DROL's runs in folders and their subfolders, evaluated or not."""
    found = []
    for folder in (folder for path in paths if path.is_dir() for folder in find_runs(path)):
        run = open_run(folder)
        algorithm: Any = run.config.algorithm
        if algorithm_name(algorithm) == "drol":
            settings = without_candidates(changed_settings(run.config, {}, run.config.steps))
            group = (run.config.task, settings, run.directory.read_config().get("dataset_fingerprint", ""))
            for row in run.metrics:
                figures = {name.removeprefix(DIAGNOSTICS): value for name, value in row.values.items()}
                found.append(Diagnosed(*group, algorithm.num_candidates, row.seed, row.step, figures))
    return found


def without_candidates(settings: str) -> str:
    """Return settings without K."""
    rest = {name: value for name, value in json.loads(settings).items() if name != CANDIDATES}
    return json.dumps(rest, sort_keys=True)


def find_sweeps(rows: Iterable[Diagnosed]) -> dict[str, Sweep]:
    """Return the diagnostics of each task against K.

    A sweep compares only runs with the same settings and data, after the same number of updates. If there are several
    such groups, the group with the most values of K counts, then with the most seeds, then with the most updates. So
    runs that stopped early are compared after the number of updates that all of them reached.
    """
    groups: dict[tuple[str, str, str, int], dict[tuple[int, int], Mapping[str, float]]] = {}
    for row in rows:
        if {*FIGURES} <= {*row.figures}:
            groups.setdefault((row.task, row.settings, row.data, row.step), {})[row.candidates, row.seed] = row.figures
    best: dict[str, tuple[tuple[int, int, int], Sweep]] = {}
    for (task, settings, _, step), found in groups.items():
        rank = (len({count for count, _ in found}), len(found), step)
        if rank[0] > 1 and (task not in best or rank > best[task][0]):
            values: dict[str, dict[int, list[float]]] = {name: {} for name in FIGURES}
            for (count, _), figures in sorted(found.items()):
                for name in FIGURES:
                    values[name].setdefault(count, []).append(figures[name])
            best[task] = rank, Sweep(step, settings, values)
    return {task: sweep for task, (_, sweep) in best.items()}


def sweep_rows(sweeps: Mapping[str, Sweep]) -> list[dict[str, Any]]:
    """Return the table of figure 3: for each K, our means beside the points digitised from the paper's figure."""
    rows = []
    for task, sweep in sweeps.items():
        published = candidate_curves().get(task, {})
        for count in sorted({*sweep.values[FIGURES[0]]}.union(*published.values())):
            own = {name: sweep.values[name].get(count, []) for name in FIGURES}
            row: dict[str, Any] = {"task": task, "K": count, "seeds": len(own[FIGURES[0]]), "updates": sweep.step}
            for name in FIGURES:
                row[name] = float(np.mean(own[name])) if own[name] else None
                if name != "candidate_divergence":
                    row[f"{name}_paper"] = published.get(name, {}).get(count)
            rows.append(row)
    return rows


def sweep_markdown(sweeps: Mapping[str, Sweep]) -> str:
    """Return the table of figure 3 as Markdown, followed by the differences between our runs and the paper's."""
    head = (
        "task", "K", "seeds", "updates", "pairwise distance, ours", "paper", "routed BC loss, ours", "paper",
        "divergence, ours",
    )  # fmt: skip
    shown = []
    for row in sweep_rows(sweeps):
        numbers = [
            (row["candidate_distance"], 3), (row["candidate_distance_paper"], 3), (row["routed_bc_loss"], 4),
            (row["routed_bc_loss_paper"], 4), (row["candidate_divergence"], 4),
        ]  # fmt: skip
        cells = ["-" if value is None else f"{value:.{digits}f}" for value, digits in numbers]
        shown.append((short_name(row["task"]), row["K"], row["seeds"], f"{row['updates']:,}", *cells))
    notes = []
    for task, sweep in sweeps.items():
        notes.append(f"{short_name(task)}: {words(setting_differences(task, 'drol', json.loads(sweep.settings)))}")
        if task in candidate_curves():
            notes[-1] += f"; the paper's points are after {published_updates(task):,} updates, {READ_OFF}"
    return "\n\n".join([markdown(head, shown), *notes])


def write_sweeps(sweeps: Mapping[str, Sweep], path: Path) -> None:
    """Write the table of figure 3 as CSV."""
    text, rows = io.StringIO(), sweep_rows(sweeps)
    writer = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    write_whole(path, text.getvalue())


@styled
def candidates_figure(sweeps: Mapping[str, Sweep], bench: Mapping[str, Any] | None = None) -> Figure:
    """Draw the diagnostics of DROL against K for up to three tasks, and the run times.

    Args:
        sweeps: The return value of `find_sweeps`.
        bench: The content of the file of `drol bench --json`; without it there are no run times.
    """
    if not sweeps:
        raise InputError("no task has runs of two or more K after the same updates; `drol paper run fig3` makes them")
    tasks = list(sweeps)[:3]
    figure = Figure(figsize=(11, 6.2 if bench else 3.4), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1)) if bench else (figure, None)
    top, bottom = parts
    for axes, task in zip(top.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        draw_diagnostics(axes, task, sweeps[task])
    handles = [
        Line2D([], [], color=REACHED, marker="o", label="candidate pairwise distance"),
        Line2D([], [], color=MISSED, marker="s", label="routed BC loss"),
        Line2D([], [], color=MUTED, ls=":", label="published (read off its figure), where the task is in it"),
    ]
    top.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8.5)
    if bench and bottom is not None:
        rows = {**bench["methods"], **bench.get("ladder", {})}
        if "drol" in bench["methods"]:
            rows["drol K=16"] = bench["methods"]["drol"]
        training_axes, action_axes = bottom.subplots(1, 2, width_ratios=(1.6, 1))
        steps = {name: row["update_milliseconds"] for name, row in rows.items()}
        draw_times(training_axes, steps, TRAINING_STEP, "one training step (filled: here, hollow: published)")
        actions = {name: row["action_milliseconds"] for name, row in rows.items() if "action_milliseconds" in row}
        draw_times(action_axes, actions, ACTION, "one action")
    return figure


def draw_times(axes: Axes, measured: Mapping[str, Sequence[float]], published: Mapping[str, float], title: str) -> None:
    """Draw our times as filled bars with the quartiles of the rounds, and the published times as hollow bars."""
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
    # Hardware differs more than methods do, so only a logarithmic axis shows both.
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_diagnostics(axes: Any, task: str, sweep: Sweep) -> None:
    """Draw the distance on the left axis, the loss on the right one, the logarithm of the divergence in an inset."""
    own = sweep.values
    other = axes.twinx()
    published = candidate_curves().get(task, {})
    for name, panel, color, marker in (
        ("candidate_distance", axes, REACHED, "o"),
        ("routed_bc_loss", other, MISSED, "s"),
    ):
        candidates = sorted(own[name])
        values = [own[name][each] for each in candidates]
        panel.plot(candidates, [np.mean(each) for each in values], color=color, marker=marker, ms=4, lw=1.8)
        low, high = [min(each) for each in values], [max(each) for each in values]
        panel.fill_between(candidates, low, high, color=color, alpha=0.15, lw=0)
        if name in published:
            panel.plot([*published[name]], [*published[name].values()], color=color, ls=":", lw=1.2)
        panel.tick_params(axis="y", colors=color)
        panel.set_ylim(bottom=0)
        panel.margins(y=0.25)
    other.grid(False)
    other.spines["right"].set_visible(True)
    inset = axes.inset_axes((0.52, 0.1, 0.42, 0.16))  # below the loss, to the right of the rise of the distance
    candidates = sorted(own["candidate_divergence"])
    logs = [np.log10(max(np.mean(own["candidate_divergence"][each]), FLOOR)) for each in candidates]
    inset.plot(candidates, logs, color=INK, lw=1, marker=".", ms=4)
    inset.set_title("log10 divergence", fontsize=6.5)
    inset.tick_params(labelsize=6)
    for panel in (axes, inset):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(candidates, [str(each) for each in candidates])
    inset.set_xticks(candidates[:: max(1, len(candidates) - 1)], [str(candidates[0]), str(candidates[-1])])
    axes.set(xlabel="K")
    axes.set_title(f"{short_name(task)}, after {thousands(sweep.step)} updates", fontsize=9)
