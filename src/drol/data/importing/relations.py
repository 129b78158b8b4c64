"""Correlate each action with the changes of each observation, at several lags.

The correlations reveal a delay between command and effect, joints in a different order, and commands that are targets
rather than changes. The module also finds angles that wrap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from drol.data.dimensions import Dimensions, named_or_numbered
from drol.data.trajectory_rows import ROW_ARRAYS, Arrays

LAGS = (-2, -1, 0, 1, 2, 3, 4, 5)  # number of steps by which the change of the observation follows the action
MOST_ROWS = 100_000
MOST_NUMBERS = 512  # numbers in an observation; longer observations are not analysed
FEWEST_PAIRS = 30
CLEAR = 0.4  # the smallest correlation to report
TARGET = 0.9  # an action whose correlation with the next observation exceeds this is reported as a target
MARGIN, FACTOR = 0.1, 1.3  # least difference and ratio to the correlation at lag 0, to report another lag
PERIODS = {"2 pi": 2 * np.pi, "360": 360.0}


@dataclass(frozen=True)
class Relations:
    """Correlations in [-1, 1]; 0 where one side is constant.

    Attributes:
        change: The correlation of action j with the change of observation i at each of `LAGS`,
            [lags, actions, observations].
        target: The correlation of action j with the next observation i, [actions, observations].
        wraps: The indices of observations that jump by a period, with the name of the period and the number of jumps.
    """

    change: np.ndarray
    target: np.ndarray
    wraps: Mapping[int, tuple[str, int]]

    @property
    def now(self) -> np.ndarray:
        """The correlation of each action with the change in the same step, [actions, observations]."""
        return self.change[LAGS.index(0)]


@dataclass
class RowSample:
    """The first rows of a dataset, added piece by piece."""

    pieces: list[Arrays] = field(default_factory=list)
    rows: int = 0

    def add(self, rows: Mapping[str, np.ndarray]) -> None:
        """Add rows, up to `MOST_ROWS` in total."""
        if not rows or self.rows >= MOST_ROWS or np.ndim(rows["observation"]) != 2:
            return
        if rows["observation"].shape[1] > MOST_NUMBERS:
            return
        self.pieces.append({name: np.array(rows[name][: MOST_ROWS - self.rows]) for name in ROW_ARRAYS})
        self.rows += len(self.pieces[-1]["last"])

    def relations(self) -> Relations | None:
        """Return the correlations in these rows; None for images and if there are too few rows."""
        if not self.pieces:
            return None
        names = ("observation", "action", "last")
        return relate(*(np.concatenate([piece[name] for piece in self.pieces]) for name in names))


def relate(observation: np.ndarray, action: np.ndarray, last: np.ndarray) -> Relations | None:
    """Correlate actions [rows, actions] with observations [rows, observations]; None if there are too few rows."""
    count = len(last) - 1
    inside = ~np.asarray(last[:-1], bool)  # rows that are transitions to the row after them
    if inside.sum() < FEWEST_PAIRS:
        return None
    observation, action = np.asarray(observation, np.float64), np.asarray(action, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        change = np.where(inside[:, None], observation[1:] - observation[:-1], 0)
    wraps = find_wraps(observation, change)
    change = without_outliers(change)
    episode = np.cumsum(np.concatenate(([False], np.asarray(last[:-1], bool))))[:count]
    lags = []
    for lag in LAGS:
        start, stop = max(0, -lag), min(count, count - lag)
        both = inside[start:stop] & inside[start + lag : stop + lag]
        both &= episode[start:stop] == episode[start + lag : stop + lag]
        acted, moved = action[start:stop][both], change[start + lag : stop + lag][both]
        lags.append(correlate(acted, moved))
    target = correlate(action[:-1][inside], observation[1:][inside])
    return Relations(np.stack(lags), target, wraps)


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Winsorize each column at the 0.5th and 99.5th percentiles, so that one jump does not dominate the correlation."""
    some = values[:: max(1, len(values) // 10_000)]
    low, high = np.percentile(some, (0.5, 99.5), axis=0)
    narrow = high <= low
    return np.where(narrow, values, np.clip(values, low, np.where(narrow, low, high)))


def correlate(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the correlation of each column of `left` with each column of `right`, [left, right]."""
    if len(left) < FEWEST_PAIRS:
        return np.zeros((left.shape[1], right.shape[1]))
    sides = []
    for side in (left, right):
        centred = side - side.mean(0)
        length = np.sqrt(np.square(centred).sum(0))
        tiny = length <= 1e-9 * np.sqrt(len(side)) * np.maximum(1, np.abs(side).max(0))
        sides.append(np.where(tiny, 0, centred / np.where(tiny, 1, length)))
    return sides[0].T @ sides[1]


def find_wraps(observation: np.ndarray, change: np.ndarray) -> dict[int, tuple[str, int]]:
    """Return the observations that jump by a full period, from one end of their range to the other."""
    found = {}
    width = observation.max(0) - observation.min(0)
    for words, period in PERIODS.items():
        jumps = (np.abs(change) > 0.9 * period).sum(0)
        for number in np.flatnonzero((jumps > 0) & (width <= 1.02 * period)).tolist():
            found.setdefault(number, (words, int(jumps[number])))
    return found


def notes_on_actions(found: Relations | None, named: Mapping[str, Dimensions | None]) -> list[str]:
    """Return notes that explain the correlations."""
    if found is None:
        return []
    actions, observations = (
        named_or_numbered(named.get(what), what, size)
        for what, size in zip(("action", "observation"), found.target.shape, strict=True)
    )
    notes = [*notes_on_delays(found, actions, observations), *notes_on_targets(found, actions, observations)]
    order = note_on_order(found, actions, observations)
    wraps = [
        f"{observations[number]} jumps by {words} in {count:,} steps: an angle that wraps; give its sine and cosine"
        for number, (words, count) in list(found.wraps.items())[:8]
    ]
    return notes + ([order] if order else []) + wraps


def notes_on_delays(found: Relations, actions: Sequence[str], observations: Sequence[str]) -> list[str]:
    """Return notes on actions whose effect is in an earlier or later step."""
    notes, strength = [], np.abs(found.change)
    for number, name in enumerate(actions):
        lag, moved = divmod(int(strength[:, number].argmax()), strength.shape[2])
        best, now = strength[lag, number, moved], strength[LAGS.index(0), number].max()
        if LAGS[lag] != 0 and best > max(CLEAR, FACTOR * now, now + MARGIN):
            when = f"{steps(LAGS[lag])} later" if LAGS[lag] > 0 else f"{steps(-LAGS[lag])} before it"
            notes.append(
                f"{name} goes with the change of {observations[moved]} {when} (correlation {best:.2f}, in its own step "
                f"at most {now:.2f}): is there a delay, or are the rows shifted?"
            )
    return notes[:8]


def notes_on_targets(found: Relations, actions: Sequence[str], observations: Sequence[str]) -> list[str]:
    """Return notes on actions that look like absolute targets, or like changes."""
    kinds: dict[str, list[str]] = {"absolute": [], "delta": []}
    for number, name in enumerate(actions):
        target, change = np.abs(found.target[number]), np.abs(found.now[number])
        if target.max() > max(TARGET, change.max()):
            kinds["absolute"].append(f"{name} ({observations[int(target.argmax())]})")
        elif change.max() > TARGET:
            kinds["delta"].append(f"{name} ({observations[int(change.argmax())]})")
    words = {
        "absolute": "look like targets: absolute actions, near the observation after them",
        "delta": "look like changes: delta actions or velocities, in proportion to how far the observation moves",
    }
    return [f"{', '.join(names[:8])} {words[kind]}" for kind, names in kinds.items() if names]


def note_on_order(found: Relations, actions: Sequence[str], observations: Sequence[str]) -> str | None:
    """Return a note if the actions move the observations in a different order; else None."""
    strength = np.maximum(np.abs(found.now), np.abs(found.target))
    clear = np.flatnonzero(strength.max(1) > CLEAR)
    moved = strength[clear].argmax(1)
    if len(clear) < 2 or len(set(moved.tolist())) < len(moved) or (np.diff(moved) > 0).all():
        return None
    pairs = ", ".join(f"{actions[a]} moves {observations[o]}" for a, o in zip(clear[:8], moved[:8], strict=True))
    return f"actions move observations in another order than their own ({pairs}): are the joints in the same order?"


def steps(count: int) -> str:
    """Return a number of steps as text."""
    return "1 step" if count == 1 else f"{count} steps"
