"""The current state of a watched run, updated as its rows arrive."""

import hashlib
import math
import time
from array import array
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError
from drol.reports.learning_curves import metric_order, plain_number, thinned
from drol.runs.config import RunConfig
from drol.runs.config_file import CONFIG, read_config
from drol.runs.directory import (
    EVALUATIONS,
    EXTRA_EVALUATIONS,
    LOCK,
    METRICS,
    OFFLINE_EVALUATIONS,
    ONLINE_EPISODES,
    REPORT,
    ROW_FILES,
    RunDirectory,
)
from drol.runs.follow_records import FollowedFile, regular
from drol.runs.records import EvaluationRow, MetricsRow, OnlineEpisodeRow
from drol.storage import is_held

MOST_POINTS = 400  # of one seed's line that are kept; beyond, every other one is dropped
MOST_ROWS = 200  # of evaluations after the training that are kept
SPARK = 40  # points of a sparkline
MARKS = 30  # observed progress, to estimate the remaining time
LARGEST_STEP = 2**63 - 1  # that is kept; no run is as long
LONGEST_NAME = 300  # characters of a name that are sent


class Line:
    """A metric of one seed over the steps, in 16 bytes per point; long lines are thinned evenly."""

    def __init__(self) -> None:
        self.steps, self.values = array("q"), array("d")
        self.every, self.seen = 1, 0

    @property
    def points(self) -> dict[int, float]:
        """The value at each step that is kept; of two rows of one step, the later one counts."""
        return dict(zip(self.steps, self.values, strict=True))

    def add(self, step: int, value: float) -> None:
        self.seen += 1
        if (self.seen - 1) % self.every == 0:
            self.steps.append(min(step, LARGEST_STEP))
            self.values.append(value)
        if len(self.steps) > MOST_POINTS:
            self.steps, self.values, self.every = self.steps[::2], self.values[::2], 2 * self.every


class WatchedRun:
    """A run's folder, read again and again.

    Attributes:
        version: Grows whenever something of the run changes.
        trouble: Why the run cannot be read; empty if it can.
    """

    def __init__(self, folder: Path, root: Path):
        self.folder, self.name = folder, folder.relative_to(root).as_posix()
        self.id = hashlib.sha256(self.name.encode(errors="surrogateescape")).hexdigest()[:16]
        self.directory = RunDirectory(folder)
        self.files = {name: FollowedFile(folder / name, kind) for name, kind in ROW_FILES.items()}
        self.version, self.config_time, self.trouble, self.recorded = 0, -1.0, "", {}
        self.state, self.updated, self.report_time = "waiting", 0.0, 0.0
        self.marks: deque[tuple[float, int]] = deque(maxlen=MARKS)  # when a file was written, and the step it reached
        self.forget()

    def forget(self) -> None:
        """Forget all rows, because a file was rewritten: the run returned to a checkpoint."""
        self.lines: dict[str, dict[int, Line]] = {}
        self.scores: dict[int, dict[int, tuple[float, int, int]]] = {}  # seed -> step -> score, successes, episodes
        self.later: dict[str, deque[Any]] = {
            name: deque(maxlen=MOST_ROWS) for name in (EXTRA_EVALUATIONS, OFFLINE_EVALUATIONS)
        }
        self.step = 0  # of the last row
        self.marks.clear()

    @property
    def label(self) -> str:
        """The name of the run, short enough to be sent; no two runs share it."""
        return self.name if len(self.name) <= LONGEST_NAME else f"{self.name[: LONGEST_NAME - 20]}… {self.id}"

    @property
    def settings(self) -> dict[str, Any]:
        return self.recorded.get("run", {})

    @property
    def total(self) -> int:
        steps = self.settings.get("steps", RunConfig.steps)
        return steps + self.settings.get("online_steps", RunConfig.online_steps)

    @property
    def behind(self) -> bool:
        return any(file.behind for file in self.files.values())

    @property
    def bad_lines(self) -> int:
        return sum(file.bad for file in self.files.values())

    def refresh(self, budget: int) -> tuple[int, bool]:
        """Read new rows, at most `budget` bytes; return the bytes read and whether anything changed."""
        changed, used, step = self.read_settings(), 0, self.step
        for name, file in self.files.items():
            rows, count, anew = file.read(budget - used) if budget > used else ([], 0, False)
            if anew and name in (METRICS, EVALUATIONS, ONLINE_EPISODES):
                self.forget()
                for other in self.files.values():
                    other.begin()
                return used + count, True
            if anew:
                self.later[name].clear()
            used += count
            for row in rows:
                self.take(name, row)
            if self.step > step:
                self.mark(file)
                step = self.step
            changed = changed or bool(rows) or anew
        state, report = self.find_state(), regular(self.folder / REPORT)
        report_time = report.st_mtime if report else 0.0
        changed = changed or (state, report_time) != (self.state, self.report_time)
        self.state, self.report_time = state, report_time
        if state != "running":
            self.marks.clear()  # the time until it is resumed is not the time of an update
        if changed and used:
            self.updated = max(
                (status.st_mtime for name in self.files if (status := regular(self.folder / name))), default=0.0
            )
        return used, changed

    def read_settings(self) -> bool:
        """Read the settings if they changed; keep the reason if they are invalid."""
        status = regular(self.folder / CONFIG)
        changed_at = status.st_mtime if status else 0.0
        if changed_at == self.config_time:
            return False
        self.config_time, self.updated = changed_at, max(self.updated, changed_at)
        try:
            self.recorded, self.trouble = read_config(self.folder), ""
        except (InputError, OSError) as error:
            self.recorded, self.trouble = {}, str(error)
        return True

    def take(self, name: str, row: Any) -> None:
        """Keep what a row says."""
        if name in self.later:
            self.later[name].append(row)
            return
        self.step = max(self.step, row.step)
        match row:
            case MetricsRow():
                self.keep(row.seed, row.step, row.values)
            case OnlineEpisodeRow():
                self.keep(row.seed, row.step, {"online/return": row.total_reward, "online/length": float(row.length)})
            case EvaluationRow():
                if row.score is not None and math.isfinite(row.score):
                    found = self.scores.setdefault(row.seed, {})
                    found[row.step] = (row.score, row.successes, len(row.episodes))
                    if len(found) > MOST_POINTS:
                        del found[min(found)]
                for prefix, figures in (("validation/", row.validation), ("offline/", row.offline)):
                    self.keep(row.seed, row.step, {prefix + key: value for key, value in (figures or {}).items()})

    def keep(self, seed: int, step: int, values: Any) -> None:
        for name, value in values.items():
            self.lines.setdefault(name, {}).setdefault(seed, Line()).add(step, value)

    def find_state(self) -> str:
        """Return "unreadable", "diverged", "running", "finished" or "stopped"."""
        if self.trouble:
            return "unreadable"
        lock = self.folder / LOCK
        if regular(lock) and is_held(lock):
            return "running"
        if regular(self.directory.divergence):
            return "diverged"
        return "finished" if self.step >= self.total else "stopped"

    def mark(self, file: FollowedFile) -> None:
        """Record that the run reached its step when this file was written.

        One read may return the rows of hours: only the last of them was written at the file's time. Rows from before
        the run was resumed, when its settings were written again, say nothing about its speed.
        """
        if file.behind:
            self.marks.clear()
        elif file.modified > (self.marks[-1][0] if self.marks else self.config_time):
            self.marks.append((file.modified, self.step))

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end of a running run, by its latest rows, else by its saved policies."""
        if self.state != "running" or self.step >= self.total:
            return None
        seconds, written = self.directory.seconds_per_update(), 0.0
        if self.marks:
            written = self.marks[-1][0]
        if len(self.marks) > 1 and written - self.marks[0][0] > 1:
            seconds = (written - self.marks[0][0]) / (self.marks[-1][1] - self.marks[0][1])
        if seconds is None:
            return None
        since = max(0.0, time.time() - written) if written else 0.0
        return max(0.0, (self.total - self.step) * seconds - since)

    @property
    def percent(self) -> bool:
        """Whether the scores are shares of successful episodes."""
        found = [each for own in self.scores.values() for each in own.values()]
        return bool(found) and all(count and abs(score - 100 * good / count) < 0.01 for score, good, count in found)

    def spark(self) -> tuple[str, list[float | None]]:
        """Return the name and the last values of what tells best how the run goes: its score, else an error."""
        if self.scores:
            values = {seed: {step: each[0] for step, each in own.items()} for seed, own in self.scores.items()}
            name = "score"
        else:
            wanted = ("offline/single_sample_error", "critic_loss", "actor_loss", *sorted(self.lines, key=metric_order))
            name = next((each for each in wanted if each in self.lines), "")
            values = {seed: line.points for seed, line in self.lines.get(name, {}).items()}
        steps = thinned(sorted({step for own in values.values() for step in own}), SPARK)
        with np.errstate(over="ignore", invalid="ignore"):  # a mean of huge values is a gap
            means = [np.mean([own[step] for own in values.values() if step in own]) for step in steps]
        return name, [plain_number(float(mean)) for mean in means]

    def summary(self) -> dict[str, Any]:
        """Return the run as a line of the list."""
        name, values = self.spark()
        last = values[-1] if values and name == "score" else None
        left = self.seconds_left()
        return {
            "id": self.id, "name": self.label, "task": str(self.settings.get("task", ""))[:LONGEST_NAME],
            "method": str(self.settings.get("algorithm", {}).get("name", ""))[:LONGEST_NAME],
            "seeds": len(self.settings.get("seeds", ())), "step": self.step, "total": self.total, "state": self.state,
            "left": None if left is None else round(left), "score": last, "metric": name[:LONGEST_NAME],
            "values": values, "percent": self.percent and name == "score", "updated": round(self.updated, 1),
            "trouble": self.trouble[:LONGEST_NAME], "reading": self.behind, "bad": self.bad_lines,
        }  # fmt: skip
