"""Write rows to trackio, which stores them in a database on this machine; view: `trackio show --project drol`."""

import importlib
from pathlib import Path
from typing import Any

from drol.runs.directory import RunDirectory

PROJECT = "drol"


class Trackio:
    """Write to the trackio run whose name ends with this identity; a resumed run continues it."""

    def __init__(self, directory: RunDirectory, identity: str):
        self.trackio: Any = importlib.import_module("trackio")
        self.trackio.init(
            project=PROJECT,
            name=f"{directory.path.absolute().name}-{identity}",
            config=directory.read_config()["run"],
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def write(self, step: int, values: dict[str, float]) -> None:
        self.trackio.log(values, step=step)

    def flush(self) -> None:
        """Do nothing: trackio writes its database by itself and has no flush."""

    def close(self) -> None:
        self.trackio.finish()


def open_mirror(directory: RunDirectory, _: Path, identity: str) -> Trackio:
    """Return the mirror of a run."""
    return Trackio(directory, identity)
