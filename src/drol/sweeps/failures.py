"""Why runs failed, kept beside their logs: a run that failed is left alone until somebody asks for it again."""

import json
from collections.abc import Iterable
from pathlib import Path

from drol.queue.jobs import Finished
from drol.storage import write_whole

SUFFIX = ".failed"


def note_failure(root: Path, finished: Finished) -> None:
    write_whole(path_of(root, finished.log), json.dumps({"run": finished.name, "reason": finished.reason}) + "\n")


def read_failures(root: Path) -> dict[str, str]:
    """Return why runs of a root failed, by their names; a note that cannot be read is none."""
    found = {}
    for path in (root / "logs").glob(f"*{SUFFIX}"):
        try:
            values = json.loads(path.read_text())
            found[str(values["run"])] = str(values["reason"])
        except (OSError, ValueError, KeyError, TypeError):  # of another process that clears it now
            continue
    return found


def clear_failures(root: Path, logs: Iterable[Path]) -> None:
    for log in logs:
        path_of(root, log).unlink(missing_ok=True)


def path_of(root: Path, log: Path) -> Path:
    return root / "logs" / f"{log.stem}{SUFFIX}"
