"""Describe a run or a sweep besides its curves: settings, tables, files, command."""

import os
import stat
from pathlib import Path
from typing import Any

from drol.errors import InputError
from drol.planning.command import train_command
from drol.reports.html.tables import OFFLINE_FIGURES
from drol.reports.live.watched import WatchedRun
from drol.runs.config import RunConfig
from drol.runs.directory import EXTRA_EVALUATIONS, OFFLINE_EVALUATIONS, REPORT
from drol.runs.follow_records import regular
from drol.sweeps.status import best_table, summary_of, sweep_status
from drol.sweeps.sweep import Sweep

SHOWN = 20  # choices and failures of a sweep
MOST_FILES = 100  # videos of a run


def describe_run(run: WatchedRun) -> dict[str, Any]:
    """Return the settings of a run, its files, its evaluations after training, and the command that makes it."""
    try:
        command = train_command(RunConfig.from_dict(run.settings), run.folder) if run.settings else ""
    except InputError:  # of an algorithm that is not registered here
        command = ""
    algorithm = dict(run.settings.get("algorithm", {}))
    settings = {"algorithm": algorithm.pop("name", ""), **algorithm}
    settings |= {key: value for key, value in run.settings.items() if key != "algorithm"}
    files = {kind: [path.name for path in paths] for kind, paths in shown_files(run).items()}
    return {
        "id": run.id, "path": str(run.folder)[:2000], "command": command[:20_000], "files": files,
        "report": run.report_time,
        "settings": {key: words(value) for key, value in settings.items()},
        "circumstances": {key: words(value) for key, value in run.recorded.get("circumstances", {}).items()},
        "offline": offline_table(run), "later": later_table(run),
    }  # fmt: skip


def words(value: Any) -> str:
    """Return a setting as text."""
    return " ".join(map(str, value))[:500] if isinstance(value, list) else "" if value is None else str(value)[:500]


def offline_table(run: WatchedRun) -> list[list[str]]:
    """Return the offline evaluations, a line of titles first; empty if there are none."""
    rows = run.later[OFFLINE_EVALUATIONS]
    known = [each for each in OFFLINE_FIGURES if any(row.figures.get(each[0]) is not None for row in rows)]
    lines = []
    for row in rows:
        values = [(row.figures.get(name), form) for name, _, form, _ in known]
        cells = ["-" if value is None else format(value, form) for value, form in values]
        lines.append([f"{row.step:,}", str(row.seed), *cells])
    return [["updates", "seed", *(title for _, title, *_ in known)], *lines] if lines else []


def later_table(run: WatchedRun) -> list[list[str]]:
    """Return the evaluations after training, a line of titles first."""
    lines = []
    for row in run.later[EXTRA_EVALUATIONS]:
        score = "-" if row.score is None else f"{row.score:.1f}"
        lines.append([f"{row.step:,}", str(row.seed), str(row.best_of or ""), score, str(len(row.episodes))])
    return [["updates", "seed", "best of", "score", "episodes"], *lines] if lines else []


def shown_files(run: WatchedRun) -> dict[str, list[Path]]:
    """Return what may be served of a run: its report and its videos; no links."""
    found = {"": [run.folder / REPORT], "videos": list_files(run.directory.videos, ".gif")}
    return {name: [path for path in paths if regular(path)] for name, paths in found.items()}


def list_files(folder: Path, suffix: str) -> list[Path]:
    """Return the files of a folder with a suffix, in order; empty if it is not a folder or a link."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        return sorted(each for each in folder.iterdir() if each.name.endswith(suffix))[:MOST_FILES]
    except OSError:
        return []


def describe_sweep(sweep: Sweep) -> dict[str, Any]:
    """Return the progress of a sweep, or the reason why it cannot be read."""
    try:
        status = sweep_status(sweep)
        failed = [[each.run.name, str(each.failure)[:500]] for each in status.those("failed")][:SHOWN]
        titles, lines = best_table(status, SHOWN)
        best = [list(titles), *map(list, lines)] if lines else []
        return {
            "name": sweep.name,
            "words": summary_of(status),
            "running": status.running,
            "failed": failed,
            "best": best,
        }
    except (InputError, OSError) as error:
        return {"name": sweep.name, "words": str(error)[:500], "running": False, "failed": [], "best": []}
