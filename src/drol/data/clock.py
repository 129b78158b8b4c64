"""Check that time increases within episodes, and measure how evenly steps are spaced."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drol.errors import InputError

# Names of time columns, in order of preference: times first, then counters of steps.
TIME_NAMES = (
    "time", "timestamp", "timestamps", "time_s", "time_sec", "seconds", "stamp", "time_ns", "timestamp_ns", "time_us",
    "time_ms", "t", "frame_index", "frame", "step", "step_index", "timestep",
)  # fmt: skip
COUNTERS = re.compile(r"(.*[^a-z])?(frame|step|timestep|index)s?([^a-z].*)?", re.IGNORECASE)
SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
GAP = 3.0  # an interval of more than this many usual intervals is a gap
MIXED = 1e5  # an interval that is over 1e5 times shorter than usual has another unit (seconds among nanoseconds: 1e9)
UNEVEN = 0.2  # share of the median interval; a larger range from the 5th to the 95th percentile is reported
KEPT_INTERVALS = 1_000_000
SHOWN_ROWS = 5


def unit_of(name: str) -> str:
    """Return the unit of a time column by its name: "s" (after scaling) or "steps"."""
    return "steps" if COUNTERS.fullmatch(name) else "s"


def scale_of(name: str) -> float:
    """Return the length of the column's unit in seconds."""
    match = re.fullmatch(r".*[^a-z](ns|us|ms)", name.lower())
    return SCALES[match[1]] if match else 1.0


def to_time(name: str, array: np.ndarray) -> np.ndarray:
    """Return a column of times as float64 [steps], in seconds or steps; dates become seconds since 1970."""
    if array.dtype.kind in "UOS":
        try:
            array = array.astype("datetime64[ns]")
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{name} has {str(array[:1].tolist())[:60]}, which is no time; it must be numbers or dates such as "
                "2026-01-31T12:00:00.5, or pass --time none"
            ) from error
    if array.dtype.kind == "M":
        array = array.astype("datetime64[ns]")
        missing = np.isnat(array)
        origin = array[~missing][0].astype("datetime64[D]") if not missing.all() else np.datetime64(0, "D")
        seconds = (array - origin).astype("timedelta64[ns]").astype(np.float64) * 1e-9
        # The days since 1970 are added as an integer number of seconds, so differences are exact to 0.1 microseconds.
        return np.where(missing, np.nan, seconds + float(origin.astype(np.int64)) * 86_400)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} is {array.dtype}; time must be numbers or dates, or pass --time none")
    scale = scale_of(name)
    return array.astype(np.float64) * scale if scale != 1 else array.astype(np.float64)


@dataclass
class Clock:
    """Checks the times of steps, which the caller passes in blocks.

    Args:
        name: The column, for messages.
        split_at: The interval in seconds (or steps) beyond which an episode is cut; None: a gap is an error.
    """

    name: str
    split_at: float | None = None
    usual: float | None = None  # the median interval of the first block that has a positive interval
    intervals: list[np.ndarray] = field(default_factory=list)
    kept: int = 0
    splits: int = 0

    @property
    def unit(self) -> str:
        return unit_of(self.name)

    def find_faults(self, time: np.ndarray, ends: np.ndarray, first: int) -> tuple[np.ndarray, str | None]:
        """Return where gaps cut episodes, and an error message about the times (None if they are valid).

        Args:
            time: The times of some steps and of the step after them, [steps + 1]; [steps] at the end of a file.
            ends: Whether each step ends an episode, [steps].
            first: The number of the first step in its file.
        """
        cut = np.zeros(len(ends), bool)
        count = len(time) - 1
        if count < 1:
            return cut, None
        inside = ~ends[:count]
        if np.isnan(time).any():
            row = first + int(np.flatnonzero(np.isnan(time))[0])
            return cut, f"{self.name} has no time in step {row:,}; fill it in, or pass --time none"
        interval = np.diff(time)
        if self.usual is None and (interval[inside] > 0).any():
            self.usual = float(np.median(interval[inside & (interval > 0)]))
        for wrong, words, advice in (
            (interval < 0, "runs backwards", "sort the rows (--transform)"),
            (interval == 0, "repeats", "leave out the repeated rows"),
        ):
            rows = np.flatnonzero(inside & wrong)
            if len(rows):
                before, after = time[rows[0]], time[rows[0] + 1]
                return cut, (
                    f"{self.name} {words} within an episode, at {self.rows(rows + 1, first)} (from {before:.10g} to "
                    f"{after:.10g}); {advice}, or pass --time none to ignore the column"
                )
        rows = np.flatnonzero(inside & (interval < (self.usual or 0) / MIXED))
        if len(rows) and self.unit == "s":
            return cut, (
                f"{self.name} has an interval of {interval[rows[0]]:.4g} s at {self.rows(rows + 1, first)} where "
                f"{self.usual:.4g} is usual; its numbers seem to have several units, so convert them to one "
                "(--transform), or pass --time none to ignore the column"
            )
        if self.split_at is not None:
            cut[:count] = inside & (interval > self.split_at)
            self.splits += int(cut.sum())
        elif self.usual is not None:
            largest = self.usual * (1.0000001 if self.unit == "steps" else GAP)
            rows = np.flatnonzero(inside & (interval > largest))
            if len(rows):
                return cut, (
                    f"{self.name} has a gap within an episode, at {self.rows(rows + 1, first)}: "
                    f"{interval[rows[0]]:.4g} {self.unit} where {self.usual:.4g} is usual; --split-at-gaps "
                    f"{2 * self.usual:.3g} cuts episodes at gaps longer than that, a larger number accepts them"
                )
        self.keep(interval[inside & ~cut[:count]])
        return cut, None

    def rows(self, numbers: np.ndarray, first: int) -> str:
        """Return the numbers of some steps as text."""
        shown = ", ".join(f"{first + int(number):,}" for number in numbers[:SHOWN_ROWS])
        more = f" and {len(numbers) - SHOWN_ROWS:,} more nearby" if len(numbers) > SHOWN_ROWS else ""
        return f"step{'s' if len(numbers) > 1 else ''} {shown}{more}"

    def keep(self, interval: np.ndarray) -> None:
        """Keep intervals for the summary, at most `KEPT_INTERVALS` of them."""
        taken = interval[: KEPT_INTERVALS - self.kept]
        if len(taken):
            self.intervals.append(taken)
            self.kept += len(taken)

    def summary(self) -> dict[str, Any] | None:
        """Return the unit and the 5th, 50th and 95th percentiles of the interval; None without any interval."""
        if not self.kept:
            return None
        low, middle, high = np.percentile(np.concatenate(self.intervals), (5, 50, 95)).tolist()
        return {"column": self.name, "unit": self.unit, "interval": middle, "low": low, "high": high}


def is_uneven(sampling: Mapping[str, Any]) -> bool:
    """Return whether the interval between steps varies so much that the user should be warned."""
    return sampling["high"] - sampling["low"] > UNEVEN * max(sampling["interval"], 1e-30)


def describe_sampling(sampling: Mapping[str, Any]) -> str:
    """Describe the sampling in words."""
    interval, unit = sampling["interval"], sampling["unit"]
    if unit == "steps":
        return f"{sampling['column']} counts by {interval:g}"
    rate = f"{1 / interval:.4g} Hz" if interval > 0 else "no rate"
    spread = f"nine tenths of the steps take {sampling['low']:.4g} to {sampling['high']:.4g} s"
    return f"{sampling['column']}: {rate} (every {interval:.4g} s; {spread})"
