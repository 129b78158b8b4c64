"""Draw a figure of the paper from the existing results, and return its numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired

import numpy as np

from drol.decoding import entries, read_json
from drol.errors import InputError, unknown_name
from drol.reports.figure_style import save_figure
from drol.results.collect import find_runs
from drol.results.result import Result
from drol.runs.run import Run, open_run
from drol_reproduction.figures import candidates, overview, ownership, public_curves, sensitivity, voronoi
from drol_reproduction.mechanism import read_mechanism
from drol_reproduction.mechanism_verdicts import mechanism_tables


@dataclass(frozen=True)
class Sources:
    """The inputs of figures.

    Attributes:
        results: The return value of `drol.collect_results`, for figures 3 and 4 and the learning curves.
        runs: Folders with runs, for figures 2 and 3; other paths are ignored.
        run: A run of DROL, for figure 2; if None, the first suitable run in `runs`.
        bench: The file of `drol bench --json`, for the run times of figure 3.
        mechanism: The file of `drol paper mechanism`, for the figure of ownership.
        other_protocols: Whether to draw public learning curves with another training protocol than our runs.
    """

    results: Sequence[Result] = ()
    runs: Sequence[Path] = ()
    run: Path | None = None
    bench: Path | None = None
    mechanism: Path | None = None
    other_protocols: bool = False


def make_figure(which: str, out: Path, sources: Sources | None = None) -> str:
    """Make a figure of the paper in a folder.

    Args:
        which: One of `FIGURES`.
        out: The folder.
        sources: The inputs of the figure; figure 1 needs none.

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
    """Draw the diagnostics against K, and run times if a bench is given; write a table with the paper's values."""
    bench = read_bench(sources.bench) if sources.bench else None
    rows = [*candidates.diagnosed_results(sources.results), *candidates.diagnosed_runs(sources.runs)]
    sweeps = candidates.find_sweeps(rows)
    save_figure(candidates.candidates_figure(sweeps, bench), out / "candidates.png")
    candidates.write_sweeps(sweeps, out / "candidates.csv")
    return candidates.sweep_markdown(sweeps)


def read_bench(path: Path) -> dict[str, Any]:
    """Read the file that `drol bench --json` wrote."""
    try:
        times = dict[str, dict[str, Any]]
        return read_json(path, entries(methods=times, ladder=NotRequired[times]), extra=True, nan=True)
    except (OSError, InputError) as error:
        raise InputError(f"{error}; `drol bench --json` makes such a file") from error


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
    """Draw ownership against the lag, the events, spread and regimes, from a file of `drol paper mechanism`."""
    if sources.mechanism is None:
        raise InputError("the figure of ownership needs --mechanism FILE, which `drol paper mechanism` makes")
    rows = read_mechanism(sources.mechanism)
    save_figure(ownership.ownership_figure(rows), out / "ownership.png")
    return "\n\n".join(mechanism_tables(rows).values())


def make_curves(out: Path, sources: Sources) -> str:
    """Draw our learning curves over public ones."""
    panels = public_curves.make_panels(sources.results, sources.other_protocols)
    save_figure(public_curves.curves_figure(panels), out / "curves.png")
    return public_curves.curves_caption(panels, sources.results)


FIGURES: dict[str, tuple[str, Callable[[Path, Sources], str]]] = {
    "1": ("overview: a tied sample and a routed one under the same push of Q", make_overview),
    "2": ("Voronoi cells at one state of a trained run: spread, handoff, stable; and over training", make_voronoi),
    "3": ("candidate distance, divergence and routed BC loss against K; run times", make_candidates),
    "4": ("score against K, the default and the best marked", make_sensitivity),
    "ownership": ("ownership of data actions against the lag, events, spread and regimes", make_ownership),
    "curves": ("learning curves of our runs over public ones of the same tasks", make_curves),
}
