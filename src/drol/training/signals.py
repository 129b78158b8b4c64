"""Requests to stop, honoured between two chunks of updates."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """The signal that asked the run to end, if one did."""

    signal: int | None = None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turn Ctrl-C and SIGTERM into a request that is honoured after the chunk; a second one ends at once."""
    request = StopRequest()
    previous = {}

    def note(number: int, _: FrameType | None) -> None:
        if request.signal is not None:
            raise KeyboardInterrupt
        request.signal = number

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, note)
    except ValueError:  # not in the main thread, where signals cannot be handled
        pass
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
