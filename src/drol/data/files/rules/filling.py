"""Values that are missing, filled with the one before them in the same episode."""

import numpy as np

from drol.data.rows import Arrays

FILLED = ("observation", "action", "reward")


def fill_previous(steps: Arrays, starts: np.ndarray, begin: int) -> dict[str, int]:
    """Fill NaN with the last value before it, in place; return how many were filled in each field.

    Args:
        steps: The fields [steps, ...] of consecutive steps.
        starts: Which steps begin an episode; nothing is carried over into them.
        begin: The first step that is not filled yet.
    """
    filled = {}
    for name in FILLED:
        if name not in steps or steps[name].dtype.kind != "f":
            continue
        values = steps[name].reshape(len(steps[name]), -1)
        missing = np.isnan(values)
        if not missing[begin:].any():
            continue
        row = np.arange(len(values))[:, None]
        source = np.maximum.accumulate(np.where(missing, 0, row), axis=0)  # the last row that has a value, or 0
        first = np.maximum.accumulate(np.where(starts, row[:, 0], 0))[:, None]  # of the episode
        usable = missing & (source >= first)
        steps[name] = np.where(usable, np.take_along_axis(values, source, 0), values).reshape(steps[name].shape)
        count = int((usable & ~np.isnan(np.take_along_axis(values, source, 0)))[begin:].sum())
        if count:
            filled[name] = count
    return filled
