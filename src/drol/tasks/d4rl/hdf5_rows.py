"""Read and record the rows of D4RL's files. This module does not import jax."""

from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.hdf5 import read_hdf5
from drol.errors import InputError

ARRAYS = ("observations", "actions", "rewards", "terminals", "timeouts")


def read_rows(path: Path) -> dict[str, np.ndarray]:
    """Read the rows of a D4RL file as float32, with flags as booleans; flatten rewards and flags to [rows]."""
    rows = read_hdf5(path, ARRAYS)
    for name in ("rewards", "terminals", "timeouts"):
        if rows[name].ndim == 2 and rows[name].shape[1] == 1:
            rows[name] = rows[name][:, 0]
    if len({array.shape[:1] for array in rows.values()}) != 1 or rows["timeouts"].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in rows.items())
        raise InputError(f"dataset file {path} has arrays of different lengths ({shapes}); they must be equal")
    if len(rows["timeouts"]) < 2:
        raise InputError(f"dataset file {path} has {len(rows['timeouts'])} rows; a transition needs two")
    kinds = {"terminals": bool, "timeouts": bool}
    return {name: array.astype(kinds.get(name, np.float32), copy=False) for name, array in rows.items()}


def count_transitions(timeouts: np.ndarray) -> int:
    """Return the number of transitions: all rows except timeouts and the last row."""
    return int((~timeouts[:-1]).sum())


class RowRecorder:
    """Records the rows of a D4RL file."""

    def __init__(self):
        self.lists: dict[str, list[Any]] = {name: [] for name in ARRAYS}

    def add(self, observation: np.ndarray, action: np.ndarray, reward: float, terminal: bool, timeout: bool) -> None:
        """Add a row."""
        for values, value in zip(self.lists.values(), (observation, action, reward, terminal, timeout), strict=True):
            values.append(np.asarray(value, bool if isinstance(value, (bool, np.bool_)) else np.float32))

    @property
    def count(self) -> int:
        return len(self.lists["actions"])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as arrays."""
        return {name: np.asarray(values) for name, values in self.lists.items()}
