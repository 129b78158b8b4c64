"""The process that mirrors a run in a tracker: `python -m drol.tracking.mirror FOLDER TRACKER`, until its input ends.

The folder of the run records the rows that were sent and the tracker's identifier of the run, so that a resumed run
continues there and no row is sent twice.
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

from drol.decoding import entries, read_json
from drol.errors import InputError
from drol.runs.directory import EVALUATIONS, METRICS, ONLINE_EPISODES, RunDirectory
from drol.runs.follow_records import FollowedFile
from drol.runs.records import EvaluationRow, MetricsRow, OnlineEpisodeRow
from drol.storage import write_whole

LOOK_SECONDS = 5.0
FILES: dict[str, tuple[str, type[Any]]] = {  # the prefix of the metrics and the type of the rows of each file
    METRICS: ("train", MetricsRow),
    EVALUATIONS: ("evaluation", EvaluationRow),
    ONLINE_EPISODES: ("online", OnlineEpisodeRow),
}
STATE = "mirrored.json"


class Mirror(Protocol):
    """The interface of a tracker; `open_mirror` of the module `to_NAME` returns one."""

    def write(self, step: int, values: dict[str, float]) -> None: ...

    def flush(self) -> None:
        """Store all written values so that a kill cannot lose them."""
        ...

    def close(self) -> None: ...


class MirroredRun:
    """A run and a record of the rows that were sent to a tracker."""

    def __init__(self, directory: RunDirectory, tracker: str):
        self.directory, self.folder = directory, directory.tracking / tracker
        self.identity, self.seen = uuid.uuid4().hex[:8], {}
        with contextlib.suppress(OSError, InputError):  # no state yet, or an invalid one
            state = read_json(self.folder / STATE, entries(run=str, seen=dict[str, int]))
            self.identity, self.seen = state["run"], state["seen"]
        self.files = {name: FollowedFile(directory.path / name, kind) for name, (_, kind) in FILES.items()}
        self.save()

    def save(self) -> None:
        write_whole(self.folder / STATE, json.dumps({"run": self.identity, "seen": self.seen}))

    def new_rows(self) -> list[tuple[int, dict[str, float]]]:
        """Return the steps and metrics of the rows that were not sent yet."""
        seeds = len(self.directory.read_config()["run"]["seeds"])
        found = []
        for name, file in self.files.items():
            prefix, _ = FILES[name]
            for row in file.read_all():
                key = f"{name} {row.seed}"
                if row.step <= self.seen.get(key, -1):  # a run that resumes after a kill writes the same rows again
                    continue
                self.seen[key] = row.step
                suffix = f"/seed-{row.seed}" if seeds > 1 else ""
                found.append((row.step, {f"{prefix}/{each}{suffix}": v for each, v in numbers_of(row).items()}))
        return found

    def mirror(self, mirror: Mirror) -> None:
        """Send the new rows."""
        rows = self.new_rows()
        for step, values in rows:
            mirror.write(step, values)
        if rows:
            mirror.flush()
            self.save()


def numbers_of(row: Any) -> dict[str, float]:
    """Return the numbers of a row by name, without its step and seed."""
    return {
        name: float(value)
        for name, value in row.columns().items()
        if name not in ("step", "seed") and isinstance(value, (int, float))
    }


def input_ended(seconds: float) -> bool:
    """Wait at most `seconds` for the end of the standard input; return whether it ended."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


def main(path: Path, tracker: str) -> None:
    with contextlib.suppress(OSError):
        os.nice(5)  # the run comes first
    directory = RunDirectory(path)
    run = MirroredRun(directory, tracker)
    module = importlib.import_module(f"drol.tracking.to_{tracker}")
    mirror = module.open_mirror(directory, run.folder, run.identity)
    try:
        ended = False
        while not ended:
            ended = input_ended(LOOK_SECONDS)
            run.mirror(mirror)
    finally:
        mirror.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
