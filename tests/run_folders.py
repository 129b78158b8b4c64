"""What two run folders must have in common."""

import json
from pathlib import Path

import numpy as np


class Killed(BaseException):
    """Ends a run as a kill does: nothing handles it."""


def files(path: Path) -> dict[str, bytes]:
    """Everything in a run's folder that may not change by itself; a file without a row is as good as none.

    Rows removed by a rewind stay in a file, but do not belong to the run.
    """
    found = {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}
    return {name: content for name, content in sorted(found.items()) if content and not name.startswith("forgotten/")}


def comparable(path: Path) -> dict[str, object]:
    """The same, with what depends on the clock taken out of the evaluations and trajectories unpacked."""
    content = {}
    for name, value in files(path).items():
        if name == "evaluations.jsonl":
            rows = [json.loads(line) for line in value.splitlines()]
            content[name] = [{key: row[key] for key in row if key != "seconds"} for row in rows]
        elif name.startswith("trajectories"):
            with np.load(path / name) as arrays:  # the archive notes the time at which it was written
                content[name] = {key: arrays[key].tobytes() for key in arrays}
        elif name != "config.json":
            content[name] = value
    return content


def assert_same_run(path: Path, expected: Path) -> None:
    """Checkpoints, policies and rows are the same bit for bit."""
    found, wanted = comparable(path), comparable(expected)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == value, name
