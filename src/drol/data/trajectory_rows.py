"""Check, finish and hash rows of trajectories laid end to end, the layout of datasets in memory and on disk.

A trajectory of T transitions is T + 1 rows. The row after a transition holds its next observation and its next action.
The last row of a trajectory is not a transition; it only holds the final observation.
"""

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from drol.data.actions import ACTION_LIMIT, find_outside
from drol.errors import InputError
from drol.machine import aligned

Arrays = dict[str, np.ndarray]

ROW_ARRAYS = ("observation", "action", "reward", "continues", "last")
PIECE_BYTES = 1 << 20  # bytes processed at once, so that checking and finishing take little memory beside the arrays


def check_rows(rows: Mapping[str, np.ndarray]) -> None:
    """Raise `InputError` unless arrays are rows of trajectories with finite values and actions in [-1, 1].

    In last rows only the observation is checked; the other arrays may hold any value there.
    """
    count, last = len(rows["observation"]), rows["last"]
    for name in ROW_ARRAYS:
        if len(rows[name]) != count:
            raise InputError(f"{name} has {len(rows[name])} rows where observation has {count}; they must be equal")
    for name in ("reward", "continues", "last"):
        if np.ndim(rows[name]) != 1:
            raise InputError(f"{name} has shape {np.shape(rows[name])}; it must be [rows]")
    if count < 2 or not last[-1] or last.all():
        raise InputError(f"{count} rows with {last.sum()} ends hold no transition; a trajectory is at least two rows")
    if rows["action"].ndim != 2:
        raise InputError(f"action has shape {rows['action'].shape}; it must be [rows, action size]")
    for name in ("observation", "action", "reward", "continues"):
        check_finite(name, rows[name], None if name == "observation" else last)
    check_actions(rows["action"], last)


def check_finite(name: str, array: np.ndarray, last: np.ndarray | None) -> None:
    """Raise `InputError` if an array has NaN or infinite values, except in rows where `last` is true."""
    if array.dtype == np.uint8:  # bytes are always finite
        return
    count = 0
    for piece in pieces(array):
        wrong = ~np.isfinite(array[piece])
        if wrong.any():
            count += int(wrong.sum() if last is None else wrong[~last[piece]].sum())
    if count:
        raise InputError(f"{name} has {count} values that are NaN or infinite; every value must be finite")


def check_actions(action: np.ndarray, last: np.ndarray) -> None:
    """Raise `InputError` if an action lies outside [-1, 1], except in last rows."""
    largest = 0.0
    for piece in pieces(action):
        used = action[piece][~last[piece]]
        if find_outside(used).any():
            largest = max(largest, np.abs(used).max())
    if largest:
        raise InputError(f"actions reach {largest:.6g}; they must lie in [-1, 1], so scale them first")


def finish_rows(rows: Mapping[str, np.ndarray], overwrite: bool = False) -> Arrays:
    """Return rows in the form that datasets store.

    Actions are clipped to the inside of (-1, 1). In last rows, reward and continues are 0. The action of a last row is
    unknown; it becomes the action of the next row, the first row of the next trajectory, as in the released code. The
    final row of the data takes the action of the row before it.

    Args:
        rows: The arrays of `ROW_ARRAYS`, `last` of booleans.
        overwrite: Whether the actions may be modified in place.

    Returns:
        The same arrays. All but observation and `last` are float32, in memory that jax uses without a copy.
    """
    last, action = rows["last"], rows["action"]
    in_place = overwrite and action.dtype == np.float32 and action.flags.writeable
    finished = action if in_place else aligned(action.shape, np.dtype(np.float32))
    for piece in pieces(action):
        finished[piece] = np.clip(action[piece], -ACTION_LIMIT, ACTION_LIMIT)
    ends = np.flatnonzero(last)
    finished[ends] = finished[np.where(ends + 1 < len(last), ends + 1, ends - 1)]
    zeroed = {}
    for name in ("reward", "continues"):
        zeroed[name] = aligned(last.shape, np.dtype(np.float32))
        zeroed[name][:] = rows[name]
        zeroed[name][ends] = 0
    return {**rows, "action": finished, **zeroed}


def are_finished(rows: Mapping[str, np.ndarray]) -> bool:
    """Return whether last rows have the values that `finish_rows` sets; read only last rows and their neighbours."""
    ends, action = np.flatnonzero(rows["last"]), rows["action"]
    if not len(ends) or ends[0] == 0 or ends[-1] != len(rows["last"]) - 1 or (np.diff(ends) < 2).any():
        return False
    following = np.append(ends[:-1] + 1, ends[-1] - 1)
    no_more = not rows["reward"][ends].any() and not rows["continues"][ends].any()
    return no_more and np.array_equal(action[ends], action[following])


class RowFinisher:
    """Finishes rows piece by piece, with the same result as `finish_rows` on all rows at once.

    The newest row is held back: if it is a last row, it takes the action of the next row, which is not known yet.
    """

    def __init__(self) -> None:
        self.newest: Arrays | None = None

    def add(self, rows: Mapping[str, np.ndarray]) -> Arrays:
        """Add at least one row; return the rows that are finished."""
        joined = finish_rows(join_rows(self.newest, rows))  # finishing a row twice does not change it
        self.newest = {name: array[-1:].copy() for name, array in joined.items()}
        return {name: array[:-1] for name, array in joined.items()}

    def close(self) -> Arrays:
        """Return the final row of the data."""
        assert self.newest is not None
        assert self.newest["last"][0], "the last trajectory is still open"
        return self.newest


def join_rows(first: Mapping[str, np.ndarray] | None, second: Mapping[str, np.ndarray]) -> Arrays:
    """Concatenate rows; `first` may be None."""
    if first is None:
        return dict(second)
    return {name: np.concatenate((array, second[name])) for name, array in first.items()}


def pieces(array: np.ndarray) -> Iterator[slice]:
    """Return slices of at most `PIECE_BYTES` that cover the rows of an array."""
    rows = max(1, PIECE_BYTES * len(array) // max(1, array.nbytes))
    return (slice(first, first + rows) for first in range(0, len(array), rows))


class Fingerprint:
    """A hash of every value of a dataset, the same in memory and on disk.

    It covers the arrays of `ROW_ARRAYS` in order: the name, type and shape of each, then its bytes.
    """

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def begin_array(self, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        """Start the next array; its bytes follow."""
        self.digest.update(f"{name} {dtype.str} {shape}".encode())

    def add_bytes(self, data: bytes | memoryview) -> None:
        """Add bytes of the current array."""
        self.digest.update(data)

    def add_image_options(self, frame_stack: int, crop_probability: float) -> None:
        """Add the frame stack and the crop probability, since they change the batches of a run."""
        if frame_stack > 1 or crop_probability > 0:
            self.digest.update(f"frame_stack {frame_stack} crop_probability {crop_probability}".encode())

    def hexdigest(self) -> str:
        return self.digest.hexdigest()
