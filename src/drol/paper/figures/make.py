"""Make a figure of the paper from whatever exists, and say its numbers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError, unknown_name
from drol.experiments.report.style import save_figure
from drol.experiments.results.collect import find_runs
from drol.experiments.results.result import Result
from drol.paper.figures import candidates, overview, ownership, sensitivity, voronoi
from drol.paper.mechanism import read_mechanism
from drol.runs.run import Run, open_run


@dataclass(frozen=True)
class Sources:
    """What figures are made from.

    Attributes:
        results: What `drol.collect_results` returned, for figures 3 and 4.
        runs: Folders with runs, for figure 2.
        run: A run of DROL, for figure 2; the first suitable one of those folders if None.
        bench: What `drol bench --json` wrote, for the run times of figure 3.
        mechanism: What `drol paper mechanism` wrote, for the figure of ownership.
    """

    results: Sequence[Result] = ()
    runs: Sequence[Path] = ()
    run: Path | None = None
    bench: Path | None = None
    mechanism: Path | None = None


def make_figure(which: str, out: Path, sources: Sources | None = None) -> str:
    """Make a figure of the paper in a folder.

    Args:
        which: One of `FIGURES`.
        out: The folder.
        sources: What it is made from; figure 1 needs nothing.

    Returns:
        Its numbers, in a few lines.
    """
    if which not in FIGURES:
        raise unknown_name("figure", which, FIGURES, "`drol paper figure --help` lists them all")
    out.mkdir(parents=True, exist_ok=True)
    return FIGURES[which][1](out, sources or Sources())


def make_overview(out: Path, _: Sources) -> str:
    return overview.make_overview(out)


def make_voronoi(out: Path, sources: Sources) -> str:
    """Draw the three regimes of a run, and its cells over training."""
    run = open_run(sources.run) if sources.run else first_routing_run(sources.runs)
    search = voronoi.find_regimes(run)
    save_figure(voronoi.voronoi_figure(search), out / "voronoi.png")
    voronoi.write_animation(run, search, out / "voronoi.gif")
    return f"{run.config.task}: {voronoi.caption(search)}"


def first_routing_run(paths: Sequence[Path]) -> Run:
    """Return the first run of DROL with K = 16 that has enough policies."""
    for path in paths:
        for folder in find_runs(path) if path.is_dir() else ():
            run = open_run(folder)
            if getattr(run.config.algorithm, "num_candidates", 0) == 16 and len(run.steps) > 3:
                return run
    raise InputError("figure 2 needs a run of drol with K = 16 and four saved policies; name one with --run")


def make_candidates(out: Path, sources: Sources) -> str:
    """Draw the diagnostics against K, and run times where a bench is given."""
    bench = read_bench(sources.bench) if sources.bench else None
    save_figure(candidates.candidates_figure(sources.results, bench), out / "candidates.png")
    lines = []
    for task, own in candidates.figures_by_candidates(sources.results).items():
        for name in candidates.FIGURES:
            points = ", ".join(f"K = {each} {np.mean(own[name][each]):.4g}" for each in sorted(own[name]))
            lines.append(f"{task}, {name}: {points}")
    return "\n".join(lines)


def read_bench(path: Path) -> dict[str, Any]:
    """Read what `drol bench --json` wrote."""
    try:
        bench = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); `drol bench --json` makes such a file") from error
    if not isinstance(bench, dict) or not isinstance(bench.get("methods"), dict):
        raise InputError(f"{path} has no times of methods; `drol bench --json` makes such a file")
    return bench


def make_sensitivity(out: Path, sources: Sources) -> str:
    """Draw the score against K."""
    save_figure(sensitivity.sensitivity_figure(sources.results), out / "sensitivity.png")
    lines = []
    for task, own in sensitivity.sensitivity_curves(sources.results).items():
        for best_of, curve in own.items():
            points = ", ".join(f"K = {each} {np.mean(curve[each]):.0f} ({len(curve[each])})" for each in sorted(curve))
            lines.append(f"{task}, {'one pass' if best_of == 1 else f'best of {best_of}'}: {points}")
    return "\n".join(lines) + "\n(in brackets: seeds)"


def make_ownership(out: Path, sources: Sources) -> str:
    """Draw how ownership passes, from a file of `drol paper mechanism`."""
    if sources.mechanism is None:
        raise InputError("the figure of ownership needs --mechanism FILE, which `drol paper mechanism` makes")
    rows = read_mechanism(sources.mechanism)
    save_figure(ownership.ownership_figure(rows), out / "ownership.png")
    last = {task: max(row.step for row in rows if row.task == task) for task in {row.task for row in rows}}
    ends = [row for row in rows if row.step == last[row.task]]
    lines = []
    for task, count in sorted({(row.task, row.candidates) for row in ends}):
        own = [row for row in ends if (row.task, row.candidates) == (task, count)]
        known = {name: ownership.values(own, count, name, last[task]) for name, _ in ownership.PANELS}
        means = ", ".join(f"{name} {np.mean(found):.3g}" for name, found in known.items() if found)
        lines.append(f"{task}, K = {count}: {means}")
    return "\n".join(lines)


FIGURES: dict[str, tuple[str, Callable[[Path, Sources], str]]] = {
    "1": ("overview: a tied sample and a routed one under the same push of Q", make_overview),
    "2": ("Voronoi cells at one state of a trained run: spread, handoff, stable; and over training", make_voronoi),
    "3": ("candidate distance, divergence and routed BC loss against K; run times", make_candidates),
    "4": ("score against K, the default and the best marked", make_sensitivity),
    "ownership": ("how ownership of data actions passes between latents", make_ownership),
}
