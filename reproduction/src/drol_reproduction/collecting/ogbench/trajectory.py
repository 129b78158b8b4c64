"""Record the rows of one trajectory, and seed its random numbers."""

from typing import Any

import numpy as np


class Trajectory:
    """Rows in OGBench's format: observation, action, whether the row is the last, and the simulator's state."""

    def __init__(self) -> None:
        self.rows: dict[str, list] = {}

    def add(self, observation: np.ndarray, action: np.ndarray, last: bool, info: dict[str, Any]) -> None:
        """Add a row; `info` is the info that the environment returned for this action."""
        row = {"observations": observation, "actions": action, "terminals": last}
        row |= {"qpos": info["prev_qpos"], "qvel": info["prev_qvel"]}
        if "prev_button_states" in info:
            row["button_states"] = info["prev_button_states"]
        for name, value in row.items():
            self.rows.setdefault(name, []).append(np.array(value))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as arrays with the types of OGBench's files."""
        dtypes: dict[str, Any] = {"terminals": bool, "button_states": np.int64}
        if self.rows["observations"][0].dtype == np.uint8:
            dtypes["observations"] = np.uint8
        return {name: np.asarray(rows, dtypes.get(name, np.float32)) for name, rows in self.rows.items()}


def seed_everything(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return a generator for one trajectory; also seed NumPy's global generator, which OGBench uses."""
    generator = np.random.default_rng(seed)
    np.random.seed(generator.integers(2**32))
    return generator
