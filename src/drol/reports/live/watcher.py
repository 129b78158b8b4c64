"""Watch all runs below a folder and return their data for a page."""

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drol.errors import InputError
from drol.reports.learning_curves import Chart, legend_of, lines_of, metric_charts
from drol.reports.live.about import describe_run, describe_sweep, shown_files
from drol.reports.live.watched import WatchedRun
from drol.reports.metric_meanings import meaning_of
from drol.results.statistical_tests import Interval
from drol.results.verdicts import score_interval
from drol.runs.config_file import CONFIG
from drol.runs.follow_records import regular
from drol.sweeps.sweep import Sweep

READ_AT_ONCE = 2 << 20  # most bytes read per update; the next update continues
LOOK_SECONDS, SCAN_SECONDS, SWEEP_SECONDS = (
    0.4,
    1.0,
    3.0,
)  # intervals of reading rows, of finding folders, of reading the sweep
MOST_RUNS, MOST_FOLDERS, DEEPEST = 2000, 20_000, 10
COMPARED = 12  # runs on one page


class Watcher:
    """The current state of the runs below a folder (read-only)."""

    def __init__(self, folder: Path, sweep: Sweep | None = None):
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder; give a folder for runs")
        self.root, self.sweep = folder.resolve(), sweep
        self.runs: dict[str, WatchedRun] = {}
        self.lock = threading.Lock()
        self.version, self.gone = 0, []  # of the list; identifiers of runs that vanished, with the version
        self.looked, self.scanned, self.swept, self.next = -1e9, -1e9, -1e9, 0
        self.sweep_words: dict[str, Any] | None = None
        self.too_many = self.reading = False

    def look(self) -> None:
        """Read new rows, unless another request did so a moment ago."""
        with self.lock:
            now = time.monotonic()
            if now - self.looked < LOOK_SECONDS and not self.reading:
                return
            if now - self.scanned >= SCAN_SECONDS:
                self.scan()
                self.scanned = time.monotonic()
            self.read()
            if self.sweep is not None and now - self.swept >= SWEEP_SECONDS:
                self.sweep_words = describe_sweep(self.sweep)
                self.swept = time.monotonic()
            self.looked = time.monotonic()

    def scan(self) -> None:
        """Find new runs, and forget deleted ones."""
        folders, self.too_many = find_folders(self.root)
        found = {str(folder): folder for folder in folders}
        known = {str(run.folder): run for run in self.runs.values()}
        for path in known.keys() - found.keys():
            self.version += 1
            self.gone.append((self.version, known[path].id))
            del self.runs[known[path].id]
        for path in found.keys() - known.keys():
            run = WatchedRun(found[path], self.root)
            self.runs[run.id] = run
            self.gone = [each for each in self.gone if each[1] != run.id]

    def read(self) -> None:
        """Read new rows of the runs in turn, so that a run with many rows does not block the others.

        Each call checks the settings and the state of every run; `reading` is True if rows are still unread.
        """
        left, runs = READ_AT_ONCE, list(self.runs.values())
        start = self.next % max(1, len(runs))
        self.next, self.reading = 0, False
        for place, run in enumerate(runs[start:] + runs[:start]):
            used, changed = run.refresh(left)
            left -= used
            if changed or not run.version:
                self.version += 1
                run.version = self.version
            if left <= 0 and not self.reading:
                self.next, self.reading = start + place + 1, True
        self.reading = self.reading or any(run.behind for run in runs)

    def list_runs(self, since: int) -> dict[str, Any]:
        """Return the runs that changed since a version of the list, and the deleted ones."""
        self.look()
        with self.lock:
            changed = [run for run in self.runs.values() if run.version > since]
            return {
                "version": self.version,
                "runs": [run.summary() for run in changed],
                "left": {run.id: round(left) for run in self.runs.values() if (left := run.seconds_left()) is not None},
                "gone": [name for version, name in self.gone if version > since],
                "count": len(self.runs),
                "reading": self.reading,
                "too_many": MOST_RUNS if self.too_many else None,
                "sweep": self.sweep_words,
            }

    def details(self, names: Sequence[str], since: int) -> dict[str, Any]:
        """Return everything about some runs, unless nothing changed since a version."""
        self.look()
        with self.lock:
            runs = [self.runs[name] for name in dict.fromkeys(names) if name in self.runs][:COMPARED]
            version = max((run.version for run in runs), default=0)
            found = {"version": version, "found": [run.id for run in runs], "runs": [run.summary() for run in runs]}
            found |= {"most": COMPARED}
            if version == since:
                return found | {"unchanged": True}
            labels = [run.label for run in runs]
            seeds = sorted({seed for run in runs for own in (run.scores, *run.lines.values()) for seed in own})
            metrics = [(label, lines_by_name(run)) for label, run in zip(labels, runs, strict=True)]
            charts = metric_charts(metrics, labels, seeds)
            return found | {
                "groups": legend_of(labels, seeds),
                "learning": learning_chart(runs, labels, seeds),
                "metrics": [chart | {"words": meaning_of(chart["name"])} for chart in charts],
                "about": [describe_run(run) for run in runs],
            }

    def file(self, run_name: str, folder: str, name: str) -> Path | None:
        """Return the path of a page, figure or video of a run; None for any other file."""
        with self.lock:
            run = self.runs.get(run_name)
        if run is None:
            return None
        known = {path.name: path for path in shown_files(run).get(folder, ())}
        path = known.get(name)
        return path if path is not None and path.resolve().is_relative_to(self.root) else None


def find_folders(root: Path) -> tuple[list[Path], bool]:
    """Return the folders of runs in a folder and below it, and whether there are more than are watched.

    Links are not followed, folders of runs are not searched, and unreadable folders are skipped.
    """
    found, waiting, searched = [], [(root, 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        if regular(folder / CONFIG):
            found.append(folder)
            if len(found) > MOST_RUNS:
                return found[:MOST_RUNS], True
            continue
        searched += 1
        if searched > MOST_FOLDERS:
            return found, True
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            deeper = [(folder / name, depth + 1) for name in sorted(names, reverse=True) if not name.startswith(".")]
            waiting += deeper if depth < DEEPEST else []
    return found, False


def lines_by_name(run: WatchedRun) -> dict[str, dict[int, dict[int, float]]]:
    return {name: {seed: line.points for seed, line in own.items()} for name, own in run.lines.items()}


def learning_chart(runs: Sequence[WatchedRun], labels: Sequence[str], seeds: Sequence[int]) -> Chart | None:
    """Return the scores of some runs at every evaluation; None before the first."""
    lines = []
    thin = sum(len(run.scores) for run in runs) <= 24
    for place, run in enumerate(runs):
        values = {seed: {step: each[0] for step, each in own.items()} for seed, own in run.scores.items()}

        def spread(step: int, run: WatchedRun = run) -> Interval | None:
            rows = [own[step] for own in run.scores.values() if step in own]
            counts = (sum(row[1] for row in rows), sum(row[2] for row in rows)) if run.percent else None
            return score_interval([row[0] for row in rows], counts)

        if values:
            lines += lines_of(values, labels[place], place, len(runs) == 1, seeds, spread, 400, thin)
    if not lines:
        return None
    percent = all(run.percent for run in runs if run.scores)
    return {"title": "success (%)" if percent else "score", "percent": percent, "height": 300, "series": lines}
