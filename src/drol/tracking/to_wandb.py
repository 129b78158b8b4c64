"""Write rows to Weights & Biases, offline unless WANDB_MODE is set; upload an offline run with `wandb sync`."""

import importlib
import os
from pathlib import Path
from typing import Any

from drol.runs.directory import RunDirectory

wandb: Any = importlib.import_module("wandb")
PROJECT = "drol"  # default of WANDB_PROJECT


class WeightsAndBiases:
    """Write to the wandb run with this identity; a resumed run continues it."""

    def __init__(self, directory: RunDirectory, folder: Path, identity: str):
        mode = os.environ.get("WANDB_MODE", "offline")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=identity,
            name=directory.path.absolute().name,
            config=directory.read_config()["run"],
            dir=str(folder),
            mode=mode,
            resume=None if mode == "offline" else "allow",  # offline, `wandb sync --append` joins the parts
            settings=wandb.Settings(
                console="off", silent=True, disable_git=True, disable_code=True, save_code=False, x_disable_stats=True
            ),
        )
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")

    def write(self, step: int, values: dict[str, float]) -> None:
        self.run.log({"step": step, **values})

    def flush(self) -> None:
        """Do nothing: a separate wandb process already has the rows."""

    def close(self) -> None:
        self.run.finish()


def open_mirror(directory: RunDirectory, folder: Path, identity: str) -> WeightsAndBiases:
    """Return the mirror of a run."""
    return WeightsAndBiases(directory, folder, identity)
