"""Generate random data of a given size, to time and trace programs without a task."""

import numpy as np

from drol.data.dataset import Dataset

OBSERVATION_SIZE, ACTION_SIZE = 29, 8  # the sizes of antmaze


def random_dataset(
    rows: int = 100_001, observation_size: int = OBSERVATION_SIZE, action_size: int = ACTION_SIZE
) -> Dataset:
    """Return one long trajectory of noise, generated in float32 to save memory."""
    generator = np.random.default_rng(0)
    action = generator.random((rows, action_size), np.float32)
    action *= 2
    action -= 1
    return Dataset.from_rows(
        observation=generator.standard_normal((rows, observation_size), np.float32),
        action=action,
        reward=np.full(rows, -1, np.float32),
        continues=np.ones(rows, np.float32),
        last=np.arange(rows) == rows - 1,
        overwrite=True,
    )
