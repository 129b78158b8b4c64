"""The process that follows a run: `python -m drol.tracking.follow FOLDER TRACKER`, until its input ends.

What was mirrored is noted in the folder of the run, with the number that the tracker knows the run by: a run that is
resumed continues there, and no row is sent twice.
"""

import contextlib
import importlib
import json
import os
import select
import sys
import uuid
from pathlib import Path
from typing import Any, Protocol

from drol.runs.directory import EVALUATIONS, METRICS, ONLINE_EPISODES, RunDirectory
from drol.runs.row_files import read_rows
from drol.runs.rows import EvaluationRow, MetricsRow, OnlineEpisodeRow
from drol.storage import write_whole

LOOK_SECONDS = 5.0
FILES: dict[str, tuple[str, type[Any]]] = {  # what each kind of row is called there
    METRICS: ("train", MetricsRow),
    EVALUATIONS: ("evaluation", EvaluationRow),
    ONLINE_EPISODES: ("online", OnlineEpisodeRow),
}
STATE = "mirrored.json"


class Mirror(Protocol):
    """A tracker: `open_mirror` of the module `to_NAME` returns one."""

    def write(self, step: int, values: dict[str, float]) -> None: ...

    def flush(self) -> None:
        """Let what was written be where a kill does not reach it."""
        ...

    def close(self) -> None: ...


class Follower:
    """What of a run was mirrored, and what is new."""

    def __init__(self, directory: RunDirectory, tracker: str):
        self.directory, self.folder = directory, directory.tracking / tracker
        self.identity, self.seen = uuid.uuid4().hex[:8], {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # nothing yet, or nothing that can be used
            state = json.loads((self.folder / STATE).read_text())
            self.identity, self.seen = str(state["run"]), {str(key): int(step) for key, step in state["seen"].items()}
        self.sizes: dict[str, int] = {}
        self.save()

    def save(self) -> None:
        write_whole(self.folder / STATE, json.dumps({"run": self.identity, "seen": self.seen}))

    def new_rows(self) -> list[tuple[int, dict[str, float]]]:
        """Return the steps and numbers of rows that were not mirrored yet."""
        seeds = len(self.directory.read_config()["run"]["seeds"])
        found = []
        for name, (prefix, kind) in FILES.items():
            path = self.directory.path / name
            size = path.stat().st_size if path.is_file() else 0
            if size == self.sizes.get(name, 0):
                continue
            self.sizes[name] = size
            for row in read_rows(path, kind):
                key = f"{name} {row.seed}"
                if row.step <= self.seen.get(key, -1):  # a run that was cut makes the same rows again
                    continue
                self.seen[key] = row.step
                suffix = f"/seed-{row.seed}" if seeds > 1 else ""
                found.append((row.step, {f"{prefix}/{each}{suffix}": v for each, v in numbers_of(row).items()}))
        return found

    def mirror(self, mirror: Mirror) -> None:
        """Write what is new."""
        rows = self.new_rows()
        for step, values in rows:
            mirror.write(step, values)
        if rows:
            mirror.flush()
            self.save()


def numbers_of(row: Any) -> dict[str, float]:
    """Return what can be drawn of a row."""
    return {
        name: float(value)
        for name, value in row.columns().items()
        if name not in ("step", "seed") and isinstance(value, (int, float))
    }


def input_ended(seconds: float) -> bool:
    """Wait for the end of the input, for so long at most."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


def main(path: Path, tracker: str) -> None:
    with contextlib.suppress(OSError):
        os.nice(5)  # the run comes first
    directory = RunDirectory(path)
    follower = Follower(directory, tracker)
    module = importlib.import_module(f"drol.tracking.to_{tracker}")
    mirror = module.open_mirror(directory, follower.folder, follower.identity)
    try:
        ended = False
        while not ended:
            ended = input_ended(LOOK_SECONDS)
            follower.mirror(mirror)
    finally:
        mirror.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
