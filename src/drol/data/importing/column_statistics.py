"""Compute statistics of the rows of a dataset piece by piece."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from drol.data.actions import ACTION_LIMIT
from drol.data.moments import Moments

HASHED_TRANSITIONS = 20_000_000  # duplicates are searched among about this many transitions
PIECE_ROWS = 1 << 16
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


@dataclass
class Statistics:
    """Ranges of values, lengths and returns of episodes, and hashes to find duplicates."""

    observation: Moments = field(default_factory=Moments)
    action: Moments = field(default_factory=Moments)
    reward: Moments = field(default_factory=Moments)
    at_limit: np.ndarray = field(default_factory=lambda: np.zeros(0))  # actions at the bounds, per dimension
    image_shape: tuple[int, ...] | None = None
    lengths: list[np.ndarray] = field(default_factory=list)
    returns: list[np.ndarray] = field(default_factory=list)
    ended: list[np.ndarray] = field(default_factory=list)  # whether each episode ended the task
    episode_hashes: list[np.ndarray] = field(default_factory=list)
    hashes: list[np.ndarray] = field(default_factory=list)  # one for each transition
    hashed: int = 0
    open_length: int = 0  # rows so far of the episode that continues in the next piece
    open_return: float = 0.0
    open_hash: int = 0
    open_ended: bool = False

    def add(self, rows: Mapping[str, np.ndarray]) -> None:
        """Add rows of trajectories laid end to end; an episode may come in several pieces."""
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

    def add_all(self, arrays: Mapping[str, np.ndarray], advance: Callable[[int], None] | None = None) -> None:
        """Add arrays that are on disk, `PIECE_ROWS` rows at a time.

        Args:
            arrays: The arrays of `ROW_ARRAYS`, mapped into memory.
            advance: Called with the number of bytes added since the last call.
        """
        for first in range(0, len(arrays["last"]), PIECE_ROWS):
            piece = {name: np.array(array[first : first + PIECE_ROWS]) for name, array in arrays.items()}
            self.add(piece)
            if advance:
                advance(sum(array.nbytes for array in piece.values()))

    def add_episodes(self, last: np.ndarray, reward: np.ndarray, continues: np.ndarray, hashes: np.ndarray) -> None:
        """Add the episodes of a piece: the end of the open episode, complete episodes, and a new open episode."""
        ends = np.flatnonzero(last)
        starts = np.concatenate(([0], ends + 1))  # the last start may lie beyond the rows
        # The index of each row in its episode, which may have started in an earlier piece.
        number = np.arange(len(last)) - np.repeat(starts, np.diff(np.append(starts, len(last))))
        number[: starts[1] if len(starts) > 1 else len(last)] += self.open_length
        mixed = mix(hashes + number.astype(np.uint64) * GOLDEN_RATIO)
        inside = starts[starts < len(last)]
        totals = np.add.reduceat(reward.astype(np.float64), inside)
        combined = np.add.reduceat(mixed, inside)
        totals[0] += self.open_return
        combined[:1] += np.array([self.open_hash], np.uint64)  # NumPy warns about overflow in scalars, not in arrays
        done = len(ends)
        lengths = ends - starts[:done]
        if done:
            lengths[0] += self.open_length
            before = np.concatenate(([self.open_ended], continues[:-1] == 0))  # whether the task ended before each row
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
        """The number of episodes that are copies of others."""
        hashes = np.concatenate(self.episode_hashes or [np.zeros(0, np.uint64)])
        return len(hashes) - len(np.unique(hashes))

    @property
    def duplicate_share(self) -> float:
        """The share of transitions whose observation and action occurred before."""
        hashes = np.concatenate(self.hashes or [np.zeros(0, np.uint64)])
        return 1 - len(np.unique(hashes)) / max(1, len(hashes))


def mix(values: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit integers with a bijection similar to one round of SplitMix64."""
    values = (values ^ (values >> np.uint64(31))) * MULTIPLIER
    return values ^ (values >> np.uint64(29))


def row_hashes(observation: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each row; different rows collide with probability about 2^-64."""
    total = np.zeros(len(observation), np.uint64)
    for part, array in enumerate((observation, action)):
        words = np.ascontiguousarray(array).reshape(len(array), -1)
        words = words.view(np.uint32 if words.dtype.itemsize == 4 else np.uint8)
        odd = np.random.default_rng(part).integers(0, 2**63, words.shape[1], dtype=np.uint64)
        odd = odd * np.uint64(2) + np.uint64(1)
        for first in range(0, words.shape[1], 256):  # in parts, since images have many numbers
            products = words[:, first : first + 256].astype(np.uint64) * odd[first : first + 256]
            total += products.sum(-1, dtype=np.uint64)
    return mix(total)
