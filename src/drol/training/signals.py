"""A wish to stop that is heeded between two chunks of updates."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """A signal that asked the run to end."""

    signal: int | None = None


@contextmanager
def requested_stop() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a wish that is heeded after the chunk; a second one ends at once."""
    stop = Stop()
    previous = {}

    def note(number: int, _: FrameType | None) -> None:
        if stop.signal is not None:
            raise KeyboardInterrupt
        stop.signal = number

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, note)
    except ValueError:  # not in the main thread, where signals cannot be handled
        pass
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
