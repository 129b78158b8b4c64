"""Record the reasons of failed runs beside their logs; a sweep skips these runs until the user retries them."""

import json
from collections.abc import Iterable
from pathlib import Path

from drol.decoding import entries, read_json
from drol.errors import InputError
from drol.jobs.job import Finished
from drol.storage import write_whole

SUFFIX = ".failed"


def note_failure(root: Path, finished: Finished) -> None:
    write_whole(path_of(root, finished.log), json.dumps({"run": finished.name, "reason": finished.reason}) + "\n")


def read_failures(root: Path) -> dict[str, str]:
    """Return the reasons of the failed runs of a root, by run; unreadable records are skipped."""
    found = {}
    for path in (root / "logs").glob(f"*{SUFFIX}"):
        try:
            failure = read_json(path, entries(run=str, reason=str))
            found[failure["run"]] = failure["reason"]
        except (OSError, InputError):  # another process may be removing it
            continue
    return found


def clear_failures(root: Path, logs: Iterable[Path]) -> None:
    for log in logs:
        path_of(root, log).unlink(missing_ok=True)


def path_of(root: Path, log: Path) -> Path:
    return root / "logs" / f"{log.stem}{SUFFIX}"
