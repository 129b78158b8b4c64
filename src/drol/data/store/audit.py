"""A report on a dataset that a person reads in a minute: what it holds, how it was understood, what looks wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from drol.data.actions import ACTION_LIMIT
from drol.data.files.episodes import Arrays
from drol.data.files.options import Counts

HASHED_TRANSITIONS = 20_000_000  # duplicates are looked for among so many
SHOWN_DIMENSIONS = 16


class Moments:
    """Least, greatest, mean and deviation of each dimension, over rows that come in pieces."""

    def __init__(self) -> None:
        self.count = 0
        self.low = self.high = self.total = self.squares = self.shift = np.zeros(0)

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        values = values.reshape(len(values), -1).astype(np.float64)
        if not self.count:
            self.low, self.high, self.shift = values.min(0), values.max(0), values[0]
            self.total = self.squares = np.zeros(values.shape[1])
        self.count += len(values)
        self.low, self.high = np.minimum(self.low, values.min(0)), np.maximum(self.high, values.max(0))
        moved = values - self.shift  # so that the squares of large numbers do not cancel
        self.total, self.squares = self.total + moved.sum(0), self.squares + np.square(moved).sum(0)

    @property
    def mean(self) -> np.ndarray:
        return self.shift + self.total / max(1, self.count)

    @property
    def deviation(self) -> np.ndarray:
        mean = self.total / max(1, self.count)
        return np.sqrt(np.maximum(0, self.squares / max(1, self.count) - np.square(mean)))

    @property
    def constant(self) -> list[int]:
        return np.flatnonzero(self.low == self.high).tolist()


@dataclass
class Statistics:
    """What is counted over the rows of a dataset, piece by piece."""

    observation: Moments = field(default_factory=Moments)
    action: Moments = field(default_factory=Moments)
    reward: Moments = field(default_factory=Moments)
    at_limit: np.ndarray = field(default_factory=lambda: np.zeros(0))  # actions at the border of the box
    image_shape: tuple[int, ...] | None = None
    lengths: list[np.ndarray] = field(default_factory=list)
    returns: list[np.ndarray] = field(default_factory=list)
    ended: list[np.ndarray] = field(default_factory=list)
    episode_hashes: list[np.ndarray] = field(default_factory=list)
    hashes: list[np.ndarray] = field(default_factory=list)
    hashed: int = 0
    open_length: int = 0  # of the episode that goes on in the next piece
    open_return: float = 0.0
    open_hash: int = 0
    open_ended: bool = False

    def add(self, rows: Mapping[str, np.ndarray]) -> None:
        """Count rows of trajectories laid end to end."""
        if not rows or not len(rows["last"]):
            return
        last = np.asarray(rows["last"])
        observation, action, reward = (np.asarray(rows[name]) for name in ("observation", "action", "reward"))
        if observation.ndim > 2:
            self.image_shape = observation.shape[1:]
            self.observation.add(observation.reshape(-1, 1))
        else:
            self.observation.add(observation)
        self.action.add(action[~last])
        self.reward.add(reward[~last, None])
        at_limit = (np.abs(action[~last]) >= ACTION_LIMIT * (1 - 1e-7)).sum(0)
        self.at_limit = at_limit if not len(self.at_limit) else self.at_limit + at_limit
        hashes = row_hashes(observation, np.where(last[:, None], 0, action))
        if self.hashed < HASHED_TRANSITIONS:
            self.hashes.append(hashes[~last])
            self.hashed += int((~last).sum())
        self.add_episodes(last, np.where(last, 0, reward), np.asarray(rows["continues"]), hashes)

    def add_episodes(self, last: np.ndarray, reward: np.ndarray, continues: np.ndarray, hashes: np.ndarray) -> None:
        ends = np.flatnonzero(last)
        starts = np.concatenate(([0], ends + 1))  # the last one may lie beyond the rows
        number = np.arange(len(last)) - np.repeat(starts, np.diff(np.append(starts, len(last))))
        number[: starts[1] if len(starts) > 1 else len(last)] += self.open_length
        mixed = mix(hashes + number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        inside = starts[starts < len(last)]
        totals = np.add.reduceat(reward.astype(np.float64), inside)
        combined = np.add.reduceat(mixed, inside)
        totals[0] += self.open_return
        combined[:1] += np.array([self.open_hash], np.uint64)  # an array wraps around in silence
        done = len(ends)
        lengths = ends - starts[:done]
        if done:
            lengths[0] += self.open_length
            before = np.concatenate(([self.open_ended], continues[:-1] == 0))  # of the transition before the last row
            self.lengths.append(lengths)
            self.returns.append(totals[:done])
            self.episode_hashes.append(combined[:done])
            self.ended.append(before[ends])
        if len(inside) > done:
            self.open_length = int(len(last) - starts[done]) + (self.open_length if not done else 0)
            self.open_return, self.open_hash = float(totals[-1]), int(combined[-1])
            self.open_ended = bool(continues[-1] == 0)
        else:
            self.open_length, self.open_return, self.open_hash, self.open_ended = 0, 0.0, 0, False

    @property
    def episodes(self) -> int:
        return sum(map(len, self.lengths))

    @property
    def transitions(self) -> int:
        return self.action.count

    @property
    def duplicate_episodes(self) -> int:
        hashes = np.concatenate(self.episode_hashes or [np.zeros(0, np.uint64)])
        return len(hashes) - len(np.unique(hashes))

    @property
    def duplicate_share(self) -> float:
        """The share of transitions whose observation and action occurred before."""
        hashes = np.concatenate(self.hashes or [np.zeros(0, np.uint64)])
        return 1 - len(np.unique(hashes)) / max(1, len(hashes))


def mix(values: np.ndarray) -> np.ndarray:
    values = (values ^ (values >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return values ^ (values >> np.uint64(29))


def row_hashes(observation: np.ndarray, action: np.ndarray) -> np.ndarray:
    """A number for each row that only equal rows share, but for one chance in 2^64."""
    total = np.zeros(len(observation), np.uint64)
    for part, array in enumerate((observation, action)):
        words = np.ascontiguousarray(array).reshape(len(array), -1)
        words = words.view(np.uint32 if words.dtype.itemsize == 4 else np.uint8)
        odd = np.random.default_rng(part).integers(0, 2**63, words.shape[1], dtype=np.uint64) * np.uint64(
            2
        ) + np.uint64(1)
        for first in range(0, words.shape[1], 256):  # images have many numbers
            total += (words[:, first : first + 256].astype(np.uint64) * odd[first : first + 256]).sum(
                -1, dtype=np.uint64
            )
    return mix(total)


def notes(statistics: Statistics, counts: Counts | None, held_out: int | None) -> list[str]:
    """What a person should know before training on it."""
    found = []
    observation, action = statistics.observation, statistics.action
    if counts and counts.dropped:
        found.append(f"{counts.dropped:,} steps were not finite; they were left out and their episodes cut there")
    if counts and counts.gaps:
        found.append(
            f"at {counts.gaps:,} steps the next observation is not that of the following step; an episode is cut there"
        )
    if counts and counts.too_short:
        found.append(f"{counts.too_short:,} episodes of a single step without a next observation were left out")
    if statistics.image_shape is None and observation.constant:
        found.append(f"observation {dimensions(observation.constant, 'never changes', 'never change')}")
    if action.constant:
        found.append(f"action {dimensions(action.constant, 'never changes', 'never change')}")
    share = statistics.at_limit / max(1, statistics.transitions)
    saturated = [number for number in np.flatnonzero(share > 0.05).tolist() if number not in action.constant]
    if saturated:
        worst = max(saturated, key=lambda number: share[number])
        found.append(
            f"action {dimensions(saturated, 'is', 'are')} often at the limit of the box "
            f"(dimension {worst} in {share[worst]:.0%} of the transitions)"
        )
    width = np.maximum(np.abs(action.low), np.abs(action.high)) if action.count else np.zeros(0)
    narrow = [number for number in np.flatnonzero(width < 0.2).tolist() if number not in action.constant]
    if narrow:
        found.append(f"action {dimensions(narrow, 'stays', 'stay')} within a fifth of the box; it may be too wide")
    if statistics.reward.count and statistics.reward.constant:
        found.append(f"every reward is {statistics.reward.low[0]:g}; there is nothing to tell good from bad")
    if statistics.duplicate_episodes:
        found.append(f"{statistics.duplicate_episodes:,} episodes are copies of others")
    if statistics.duplicate_share > 0.01:
        found.append(f"{statistics.duplicate_share:.0%} of the transitions are copies of others")
    found += notes_on_ends(statistics)
    if statistics.image_shape is None and observation.count:
        wild = np.flatnonzero((observation.deviation > 30) | (np.abs(observation.mean) > 30)).tolist()
        if wild:
            found.append(f"observation {dimensions(wild, 'is', 'are')} large; train with --standardise-observations")
    if statistics.transitions < 256:
        found.append(f"{statistics.transitions:,} transitions are fewer than a batch; some are drawn twice")
    if held_out == 0:
        found.append("no episode is held out, so there is nothing to validate on; a larger --validation holds out more")
    return found


def notes_on_ends(statistics: Statistics) -> list[str]:
    found = []
    lengths = np.concatenate(statistics.lengths or [np.zeros(0, int)])
    ended = np.concatenate(statistics.ended or [np.zeros(0, bool)])
    if ended.sum() > 2 and len(np.unique(lengths[ended])) == 1 and lengths[ended][0] == lengths.max():
        found.append(
            f"all {ended.sum():,} true ends come after exactly {lengths[ended][0]:,} transitions: is it a time limit? "
            "If so, import again with --ends timeout"
        )
    if len(ended) and not ended.any():
        found.append("no episode truly ends; the value beyond every end is bootstrapped")
    return found


def dimensions(numbers: list[int], verb_of_one: str, verb_of_many: str) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"dimensions {shown} {verb_of_many}" if len(numbers) > 1 else f"dimension {shown} {verb_of_one}"


def summary(statistics: Statistics) -> list[str]:
    """Lengths, returns and ranges as a small table."""
    lines = ["", f"  {'':14s}{'smallest':>12s}{'median':>12s}{'largest':>12s}"]
    for name, parts in (("length", statistics.lengths), ("return", statistics.returns)):
        if parts:
            values = np.concatenate(parts)
            cells = "".join(f"{number:>12,.6g}" for number in (values.min(), np.median(values), values.max()))
            lines.append(f"  {name:14s}{cells}")
    lines += ["", f"  {'':14s}{'smallest':>12s}{'mean':>12s}{'largest':>12s}{'deviation':>12s}"]
    for name, moments in (
        ("observation", statistics.observation), ("action", statistics.action), ("reward", statistics.reward)
    ):  # fmt: skip
        lines += table(name, moments)
    return lines


def table(name: str, moments: Moments) -> list[str]:
    size = len(moments.low)
    labels = [name] if size == 1 else [f"{name} {number}" for number in range(size)]
    columns = (moments.low, moments.mean, moments.high, moments.deviation)
    lines = [
        f"  {label:14s}" + "".join(f"{column[number]:>12.4g}" for column in columns)
        for number, label in enumerate(labels[:SHOWN_DIMENSIONS])
    ]
    if size > SHOWN_DIMENSIONS:
        rest = slice(SHOWN_DIMENSIONS, None)
        low, high = moments.low[rest].min(), moments.high[rest].max()
        lines.append(f"  {name} {SHOWN_DIMENSIONS} to {size - 1} lie between {low:.4g} and {high:.4g}")
    return lines


def count_rows(arrays: Mapping[str, np.ndarray], statistics: Statistics, rows: int = 1 << 16) -> None:
    """Count arrays that lie on disk, some rows at a time."""
    for first in range(0, len(arrays["last"]), rows):
        piece: Arrays = {name: np.array(array[first : first + rows]) for name, array in arrays.items()}
        statistics.add(piece)
